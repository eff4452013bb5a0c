// What the examples' command lines have in common: FILE [STEPS].
#pragma once

#include <charconv>
#include <cstdio>
#include <exception>
#include <string_view>

/// A number of steps; 0 where the text is none.
inline int steps_of(std::string_view text) {
  int steps = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  return error == std::errc() && end == text.data() + text.size() && steps > 0 ? steps : 0;
}

/// Trains on what the command line names, `what`, for as many steps as it says. Returns the exit
/// status.
inline int run_example(int argc, char** argv, const char* what, void (*train)(const char*, int)) {
  const int steps = argc > 2 ? steps_of(argv[2]) : 300;
  if (argc < 2 || argc > 3 || steps == 0) {
    std::fprintf(stderr, "usage: %s %s [STEPS]\n", argv[0], what);
    return 2;
  }
  try {
    train(argv[1], steps);
    return 0;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return 1;
  }
}

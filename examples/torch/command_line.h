// What the examples' command lines have in common: FILE [STEPS].
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>

/// Trains on what the command line names, `what`, for as many steps as it says. Returns the exit
/// status.
inline int run_example(int argc, char** argv, const char* what, void (*train)(const char*, int)) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s %s [STEPS]\n", argv[0], what);
    return 2;
  }
  try {
    train(argv[1], argc > 2 ? std::atoi(argv[2]) : 300);
    return 0;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return 1;
  }
}

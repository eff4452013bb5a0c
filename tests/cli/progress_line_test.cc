// The line that shows how far a long command is.
#include <cstdint>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "cli/terminal.h"
#include "support/seed.h"
#include "terminal/progress_line.h"

namespace sotto::test::progress_line_test {

namespace {

/// What was drawn in place: from each carriage return to where the rest of the line is erased.
std::vector<std::string> frames_in(std::string_view text) {
  std::vector<std::string> frames;
  while (true) {
    const auto from = text.find('\r');
    if (from == std::string_view::npos) {
      return frames;
    }
    text.remove_prefix(from + 1);
    const auto end = text.find_first_of("\r\n\x1b");
    if (end != std::string_view::npos && text.substr(end).starts_with("\x1b[K")) {
      frames.emplace_back(text.substr(0, end));
    }
  }
}

Arguments long_command(const std::string& name) {
  if (name == "faults") {
    return command({"faults", SOTTO_FAULT_PLANS "/soak.toml", "--seeds", "4"});
  }
  return command(small_train({"--rounds", "30"}));
}

}  // namespace

TEST_CASE("a bar and its label stay below any width") {
  const std::uint64_t seed = test::drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int columns = -1; columns <= 130; ++columns) {
    CAPTURE(columns);
    const std::uint64_t total = 1 + random() % 1'000'000;
    const std::uint64_t done = random() % (total + 1);
    const std::string label = fmt::format("round {}/{}", done, total);
    const std::string line = cli::bar_line(done, total, label, columns);
    CHECK(line.size() <= static_cast<std::size_t>(std::max(0, columns - 1)));
    CHECK((columns < 40 || line.ends_with(label)));
    CHECK((line.find('[') == std::string::npos || line.ends_with(label)));
  }
  CHECK(cli::bar_line(1, 2, "half", 48) == "[====================                    ] half");
  CHECK(cli::bar_line(0, 0, "none", 30) == "[                      ] none");
}

TEST_CASE("a terminal that is dumb gets whole lines alone") {
  for (const std::string kind : {"dumb", ""}) {
    for (const std::string name : {"train", "faults"}) {
      CAPTURE(kind);
      CAPTURE(name);
      OnTerminal program(long_command(name), 80, 24, kind);
      CHECK(program.wait() == 0);
      CHECK(frames_in(program.text()).empty());
      CHECK(program.text().find('\x1b') == std::string::npos);
      const std::string& text = program.text();
      for (std::size_t at = text.find('\r'); at != std::string::npos;
           at = text.find('\r', at + 1)) {
        CHECK(text.substr(at, 2) == "\r\n");  // as a terminal shows a newline
      }
    }
  }
}

TEST_CASE("the bar is never as wide as its terminal") {
  for (const int columns : {1, 9, 20, 40, 79}) {
    for (const std::string name : {"train", "faults"}) {
      CAPTURE(columns);
      CAPTURE(name);
      OnTerminal program(long_command(name), static_cast<unsigned short>(columns), 24);
      CHECK(program.wait() == 0);
      for (const std::string& frame : frames_in(program.text())) {
        CHECK(frame.size() < static_cast<std::size_t>(columns));
      }
    }
  }
}

}  // namespace sotto::test::progress_line_test

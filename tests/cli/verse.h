// A small text for tasks of text.
#pragma once

#include <string>

namespace sotto::test {

/// A text of some symbols, long enough for a small context.
inline std::string verse() {
  std::string text;
  for (int line = 0; line < 120; ++line) {
    text += line % 3 == 0 ? "to be or not to be\n" : line % 3 == 1 ? "that is it\n" : "or not\n";
  }
  return text;
}

}  // namespace sotto::test

// What the pages of docs/ say, for tests that compare them with what the program has. The test's
// program defines SOTTO_DOCS.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "support/text_of_file.h"

namespace sotto::test {

/// What stands in a page of docs/ behind `from` and before `to`.
inline std::string passage(const std::string& page, std::string_view from, std::string_view to) {
  const std::string text = text_of_file(SOTTO_DOCS "/" + page);
  const std::size_t first = text.find(from);
  REQUIRE_MESSAGE(first != std::string::npos, "docs/", page, " no longer says ", from);
  const std::size_t last = text.find(to, first);
  REQUIRE_MESSAGE(last != std::string::npos, "docs/", page, " no longer says ", to);
  const std::string found = text.substr(first + from.size(), last - first - from.size());
  REQUIRE(found.size() < 700);  // else the list ends elsewhere
  return found;
}

/// Whether a text has the word as code, alone or as the first of a specification: `topk:KEEP`.
inline bool has_code(std::string_view text, std::string_view word) {
  std::string code = "`";
  code += word;
  for (const char end : {'`', ':'}) {
    if (text.find(code + end) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace sotto::test

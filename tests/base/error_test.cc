#include <sotto/base/error.h>

#include <string>

#include <doctest/doctest.h>

namespace sotto::test::error_test {

TEST_CASE("text that can be shown stays as it is") {
  for (const std::string text : {"", "plain", "two\nlines\tand a tab", "x̄ ½ Σ → 10 µs", "漢字 😀",
                                 "\xC2\xA0", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    CAPTURE(text);
    CHECK(printable(text) == text);
  }
}

TEST_CASE("control characters and bytes that are no UTF-8 are written out") {
  CHECK(printable("\x1B[31mred\x7F\r") == "\\x1b[31mred\\x7f\\x0d");
  CHECK(excerpt("short", 5) == "short");
  CHECK(excerpt("longer", 5) == "longe");
  CHECK(excerpt("aé–b", 2) == "a");  // no half characters
  CHECK(excerpt("aé–b", 5) == "aé");
  CHECK(excerpt(std::string(100, '\xAF'), 60).size() <= 60);
  CHECK(printable(std::string("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\xC2\x85") == "\\xc2\\x85");           // a control character of C1
  CHECK(printable("caf\xE9!") == "caf\\xe9!");            // Latin-1
  CHECK(printable("\xC0\xAF") == "\\xc0\\xaf");           // overlong
  CHECK(printable("\xE0\x9F\xBF") == "\\xe0\\x9f\\xbf");  // overlong
  CHECK(printable("\xED\xA0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("\xF4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(printable("\xE2\x82") == "\\xe2\\x82");  // cut short
  CHECK(printable("\xE2\x82\x28") == "\\xe2\\x82(");
}

TEST_CASE("messages of errors are printable") {
  CHECK(std::string(Error("no file \xFF\x1B").what()) == "no file \\xff\\x1b");
}

}  // namespace sotto::test::error_test

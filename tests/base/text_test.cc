// Any bytes, in each form in which text goes out.
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/status.h>
#include <sotto/base/text.h>

namespace sotto::test::text_test {

namespace {

const std::vector<std::string> kHostile = {"bad\xff.csv",
                                           std::string("a\0b", 3),
                                           "\x1b[31mred\x7f",
                                           "two\nlines\tand\r",
                                           "<a href='x'>&\"",
                                           "\xEF\xBF\xBE\xEF\xBF\xBF",
                                           "\xC2\x9B"
                                           "31m",
                                           "back\\slash",
                                           "a,b\"c\"",
                                           "\xED\xA0\x80",
                                           "ﬁne ½ 😀"};

/// Whether all of it is UTF-8 that may be shown on one line.
bool shows_on_one_line(std::string_view text) { return one_line(text) == text; }

}  // namespace

TEST_CASE("text: each form holds valid characters only, whatever the bytes") {
  constexpr unsigned kSeed = 7;
  CAPTURE(kSeed);
  std::vector<std::string> texts = kHostile;
  std::mt19937 random(kSeed);
  for (int i = 0; i < 200; ++i) {
    std::string& text = texts.emplace_back();
    for (int k = 0; k < 40; ++k) {
      text += static_cast<char>(random());
    }
  }
  for (const std::string& text : texts) {
    CAPTURE(printable(text));
    CHECK(printable(printable(text)) == printable(text));
    CHECK(shows_on_one_line(one_line(text)));
    CHECK(shows_on_one_line(toml_text(text)));
    CHECK(printable(csv_text(text)) == csv_text(text));
    const std::string markup = markup_text(text);
    CHECK(printable(markup) == markup);
    CHECK(markup.find_first_of("<>\"'") == std::string::npos);
  }
}

TEST_CASE("text: what a form escapes") {
  CHECK(one_line("two\nlines\tand") == "two\\x0alines\\x09and");
  CHECK(markup_text("<a b='c'>&\"") == "&lt;a b=&#39;c&#39;&gt;&amp;&quot;");
  CHECK(markup_text("bad\xff") == "bad\\xff");
  CHECK(printable("\xEF\xBF\xBE\xEF\xBF\xBF\xEF\xBF\xBD") ==
        "\\xef\\xbf\\xbe\\xef\\xbf\\xbf\xEF\xBF\xBD");
  CHECK(printable("gpj.\xE2\x80\xAE\xE2\x81\xA6"
                  "exe \xE2\x80\x94 \xD7\xA9") ==
        "gpj.\\xe2\\x80\\xae\\xe2\\x81\\xa6exe \xE2\x80\x94 \xD7\xA9");
  CHECK(toml_text("20 ms") == "\"20 ms\"");
  CHECK(toml_text("a\"\\\n\t\xff") == R"("a\"\\\n\t\\xff")");
  CHECK(csv_text("plain") == "plain");
  CHECK(csv_text("a,b \"c\"") == R"("a,b ""c""")");
  CHECK(csv_text("two\nlines") == "\"two\nlines\"");
  CHECK(csv_text("bad\xff\r") == "bad\\xff\\x0d");
}

TEST_CASE("text: small letters are those of ASCII, and all other bytes stay") {
  CHECK(small_letters("Site-A, @[`{ Ångström \xC4\xFF") == "site-a, @[`{ Ångström \xC4\xFF");
  CHECK(small_letters("ABCXYZ") == "abcxyz");
  CHECK(small_letters("").empty());
}

TEST_CASE("text: messages of faults are printable, as those of errors are") {
  const Status fault(Fault::peer_lost, "it said \x1b[2J\xff");
  CHECK(fault.message() == "it said \\x1b[2J\\xff");
  CHECK(fault.with_context("node \xfe").message() == "node \\xfe: it said \\x1b[2J\\xff");
}

}  // namespace sotto::test::text_test

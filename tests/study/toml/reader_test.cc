// Tables of TOML files: values of each kind, and what is refused with file, line and key.
#include <sotto/study/toml/reader.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/study/toml/text.h>

namespace sotto::test::reader_test {

using namespace sotto::study;

namespace {

const std::string kPath = "plans/week.toml";

/// What `act` is refused with, of a file with this text.
template <typename Act>
std::string refusal(const std::string& text, const Act& act) {
  const toml::table file = parse_toml(kPath, text);
  TomlReader in(kPath, "", file);
  try {
    act(in);
  } catch (const Error& error) {
    return error.what();
  }
  FAIL_CHECK("no sotto::Error was thrown");
  return {};
}

}  // namespace

TEST_CASE("values of each kind are read, and those that are missing have none") {
  const toml::table file =
      parse_toml(kPath,
                 "name = \"ocean\"\nshare = 0.25\nwhole = 3\nyes = true\n"
                 "runs = [\"a\", \"b\"]\none = \"c\"\n"
                 "[link]\nbandwidth = \"1 Gbit/s\"\n[[at]]\nt = 1\n[[at]]\nt = 2\n");
  TomlReader in(kPath, "", file);
  CHECK(in.text("name") == "ocean");
  CHECK(in.number("share") == 0.25);
  CHECK(in.number("whole") == 3);
  CHECK(in.count("whole", 1, 3) == 3U);
  CHECK(in.truth("yes") == true);
  CHECK(in.texts("runs") == std::vector<std::string>{"a", "b"});
  CHECK(in.texts("one") == std::vector<std::string>{"c"});
  CHECK(in.table("link")->all_texts() ==
        std::map<std::string, std::string>{{"bandwidth", "1 Gbit/s"}});
  auto tables = in.tables("at");
  REQUIRE(tables.size() == 2);
  CHECK(tables[1].count("t", 0, 9) == 2U);
  CHECK(in.holds_text("name"));
  CHECK_FALSE(in.holds_text("share"));
  in.finish();  // all was asked for
  CHECK_FALSE(in.text("other"));
  CHECK_FALSE(in.number("other"));
  CHECK_FALSE(in.count("other", 0, 1));
  CHECK_FALSE(in.truth("other"));
  CHECK_FALSE(in.table("other"));
  CHECK(in.texts("other").empty());
  CHECK(in.tables("other").empty());
}

TEST_CASE("a number is parsed as it is written, and its refusal has place and key in front") {
  const toml::table file = parse_toml(kPath, "rate = 40\nslow = 0.5\n");
  TomlReader in(kPath, "", file);
  const auto as_text = [](const std::string& text) { return text; };
  CHECK(in.parsed("rate", as_text) == "40");
  CHECK(in.parsed("slow", as_text) == "0.5");
  CHECK_FALSE(in.parsed("other", as_text));
  CHECK(refusal("\n\nrate = 40\n", [](TomlReader& reader) {
          (void)reader.parsed("rate", [](const std::string&) -> int { throw Error("no unit"); });
        }) == "plans/week.toml:3: rate: no unit");
}

TEST_CASE("values of another kind are refused with file, line and key") {
  const std::string text = "a = 1\nb = \"x\"\nc = [1]\nd = 7.5\ne = \"4 %\"\n";
  CHECK(refusal(text, [](TomlReader& in) { (void)in.text("a"); }) ==
        "plans/week.toml:1: a: it must be a string");
  CHECK(refusal(text, [](TomlReader& in) { (void)in.number("b"); }) ==
        "plans/week.toml:2: b: it must be a number");
  CHECK(refusal(text, [](TomlReader& in) { (void)in.number("e"); }) ==
        "plans/week.toml:5: e: it must be a number, a share: 0.04 for 4 %");
  CHECK(refusal(text, [](TomlReader& in) { (void)in.truth("a"); }) ==
        "plans/week.toml:1: a: it must be true or false");
  CHECK(refusal(text, [](TomlReader& in) { (void)in.texts("c"); }) ==
        "plans/week.toml:3: c: it must be a string, or a list of strings");
  CHECK(refusal(text, [](TomlReader& in) { (void)in.table("a"); }) ==
        "plans/week.toml:1: a: it must be a table");
  CHECK(refusal(text, [](TomlReader& in) { (void)in.tables("c"); }) ==
        "plans/week.toml:3: c: it must be a table, or a list of tables");
  CHECK(refusal("n = nan\n", [](TomlReader& in) { (void)in.number("n"); }) ==
        "plans/week.toml:1: n: it must be a number");
}

TEST_CASE("whole numbers keep their range, at both ends of 64 bits") {
  const auto count = [](const std::string& text, std::uint64_t least, std::uint64_t most) {
    return refusal(text, [&](TomlReader& in) { (void)in.count("n", least, most); });
  };
  CHECK(count("n = 0\n", 1, 8) == "plans/week.toml:1: n: it must be a whole number from 1 to 8");
  CHECK(count("n = 9\n", 1, 8).ends_with("from 1 to 8"));
  CHECK(count("n = -1\n", 0, UINT64_MAX).ends_with("from 0 to 18446744073709551615"));
  CHECK(count("n = 2.0\n", 1, 8).ends_with("from 1 to 8"));
  CHECK(count("n = 2\n", 1, 1) == "plans/week.toml:1: n: it must be 1");
  const toml::table file = parse_toml(kPath, "n = 9223372036854775807\n");
  TomlReader in(kPath, "", file);
  CHECK(in.count("n", 0, UINT64_MAX) == 9'223'372'036'854'775'807U);
}

TEST_CASE("keys that nobody asked for are refused, with the one that is meant") {
  CHECK(refusal("bandwith = 1\n",
                [](TomlReader& in) {
                  in.allow({"bandwidth", "latency"});
                  in.finish();
                }) ==
        "plans/week.toml:1: bandwith: there is no such key; did you mean bandwidth? there are "
        "bandwidth, latency");
  CHECK(refusal("\nnodse = 4\n", [](TomlReader& in) { in.require("nodes", "a table [nodes]"); }) ==
        "plans/week.toml:2: nodse: there is no such key; did you mean nodes?");
  CHECK(refusal("other = 4\n", [](TomlReader& in) {
          in.allow({"other"});
          in.require("nodes", "a table [nodes]");
        }).ends_with("nodes: it is missing; give a table [nodes]"));
}

TEST_CASE("a table within a table, and one of a list, are called by their way there") {
  const std::string text = "[a]\n[a.b]\nc = 1\n[[d]]\n[[d]]\ne = 1\n";
  CHECK(refusal(text, [](TomlReader& in) { (void)in.table("a")->table("b")->text("c"); }) ==
        "plans/week.toml:3: a.b.c: it must be a string");
  CHECK(refusal(text, [](TomlReader& in) { (void)in.tables("d")[1].text("e"); }) ==
        "plans/week.toml:6: d[2].e: it must be a string");
}

TEST_CASE("files that a file names lie beside it") {
  const toml::table file = parse_toml(kPath, "a = 1\n");
  const TomlReader in(kPath, "", file);
  CHECK(in.beside("trace.csv") == "plans/trace.csv");
  CHECK(in.beside("/data/trace.csv") == "/data/trace.csv");
}

TEST_CASE("a text that is no TOML is refused with file and line") {
  CHECK_THROWS_AS((void)parse_toml(kPath, "a = \n"), Error);
  try {
    (void)parse_toml(kPath, "a = 1\nb = [1,\n");
    FAIL("it was parsed");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).starts_with("plans/week.toml:"));
  }
}

}  // namespace sotto::test::reader_test

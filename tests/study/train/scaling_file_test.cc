// Files of sums and of scalings: what is written is read, and what is damaged is refused by place.
#include <sotto/study/train/scaling_file.h>

#include <string>

#include <doctest/doctest.h>

#include "support/scratch.h"

namespace sotto::test::scaling_file_test {

using namespace sotto::study;

namespace {

TableSums example_sums() {
  return {.source = {},
          .digest = {},
          .rows = 812.25,
          .privacy = {.noise_multiplier = 4.13, .epsilon = 1, .delta = 1e-6},
          .columns = {{"age \"now\"", false, 0, 120, -12.5, 301.75},
                      {"price, €", true, -1e-3, 2e6, 1e-17, 3}}};
}

std::string replaced_in(std::string text, const std::string& part, const std::string& with) {
  REQUIRE(contains(text, part));
  return text.replace(text.find(part), part.size(), with);
}

}  // namespace

TEST_CASE("a file of sums is read as it was written") {
  const Scratch scratch;
  const std::string text = table_sums_text(example_sums());
  const TableSums read = read_table_sums("combine", scratch.write("a.toml", text).string());
  CHECK(table_sums_text(read) == text);
  CHECK(read.digest.size() == 64);
  CHECK(read.rows == 812.25);
  CHECK(read.columns[1].target);
  CHECK(read.columns[1].name == "price, €");
  CHECK(read.columns[1].sum == 1e-17);
  CHECK(read.privacy.noise_multiplier == 4.13);
  TableSums open = example_sums();
  open.privacy.noise_multiplier = 0;
  CHECK_FALSE(contains(table_sums_text(open), "privacy"));
}

TEST_CASE("a scaling is read as it was written") {
  const Scratch scratch;
  const SharedScaling scaling{.source = {},
                              .columns = {{"age", 54.125, 1e-12}, {"bmi", -0.0, 3}},
                              .targets = {{"price", 1e9, 1e5}},
                              .sites = {{"ab12", 4.5}, {"cd34", 0}}};
  const std::string text = scaling_text(scaling);
  const SharedScaling read = read_scaling("scaling", scratch.write("s.toml", text).string());
  CHECK(scaling_text(read) == text);
  CHECK(scaling_digest(read) == scaling_digest(scaling));
  CHECK(read.sites[1].noise_multiplier == 0);
}

TEST_CASE("files of sums and scalings that are none are refused with their lines") {
  const Scratch scratch;
  const std::string sums = table_sums_text(example_sums());
  const auto said = [&](const std::string& text, bool scaling = false) {
    const std::string path = scratch.write("x.toml", text).string();
    return refusal([&] {
      scaling ? (void)read_scaling("scaling", path) : (void)read_table_sums("combine", path);
    });
  };
  const auto changed = [&](const std::string& part, const std::string& with) {
    return said(replaced_in(sums, part, with));
  };
  CHECK(contains(said(sums, true), "x.toml:1: sotto-column-sums: these are the sums of one site"));
  CHECK(contains(said("sotto-scaling = 1\n"), "this is a scaling"));
  CHECK(contains(changed("sums = 1", "sums = 2"), "it must be 1"));
  CHECK(contains(changed("rows = 812.25", "rows = nan"), "rows"));
  CHECK(contains(changed("rows = 812.25\n", ""), "it is missing"));
  CHECK(contains(changed("rows = 812.25", "rows = 1e30"), "no table has so many rows"));
  CHECK(contains(changed("largest = 120", "largest = -1"), "must be above least"));
  CHECK(contains(changed("role = \"feature\"", "role = \"label\""), "it is feature or target"));
  CHECK(contains(changed("noise-multiplier = 4.13", "noise-multiplier = 0"), "it must be 0.001"));
  CHECK(contains(changed("sum = -12.5", "sum = \"-12.5\""), "sum"));
  CHECK(contains(changed("squares = 3", "squares = 3\nsecret = 1"), "secret"));
  CHECK(contains(changed("price, €", "age \\\"now\\\""), "another column of this name"));
  CHECK(contains(said("sotto-column-sums = 1\nrows = 3\n"), "[[column]]"));
  const std::string one = "sotto-scaling = 1\n[[column]]\nname = \"a\"\nmean = 0\ndeviation = ";
  CHECK(contains(said(one + "0\n", true), "it must be positive"));
  CHECK(contains(said(one + "1e-320\n", true), "it must be positive"));
  CHECK(contains(refusal([] { (void)read_scaling("--scaling", "/nowhere.toml"); }), "--scaling"));
}

}  // namespace sotto::test::scaling_file_test

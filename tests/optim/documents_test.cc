// The documents name what the registries have: docs/algorithms.md every algorithm with its keys,
// docs/step_rules.md every step rule.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/optim/registry.h>
#include <sotto/optim/step_rule_info.h>

#include "support/text_of_file.h"

namespace sotto::test::documents_test {

namespace {

/// The rows of a page's tables.
std::vector<std::string> table_rows(const std::string& page) {
  std::ifstream in(SOTTO_DOCS "/" + page);
  std::vector<std::string> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("| ")) {
      rows.push_back(line);
    }
  }
  return rows;
}

bool has_cell(std::string_view row, std::string_view word) {
  return row.find(fmt::format("`{}`", word)) != std::string_view::npos;
}

}  // namespace

TEST_CASE("the page of algorithms has a row for each, and one for each of its hyperparameters") {
  const auto rows = table_rows("algorithms.md");
  REQUIRE(rows.size() > 20);
  for (const AlgorithmInfo& info : algorithms()) {
    CHECK_MESSAGE(
        std::ranges::any_of(rows, [&](const auto& row) { return has_cell(row, info.name); }),
        "docs/algorithms.md has no row for ", info.name);
    for (const Hyperparameter& one : info.hyperparameters) {
      // One that stands alone has its values' form in place of a key.
      const bool alone = one.kind == HyperparameterKind::text;
      CHECK_MESSAGE(std::ranges::any_of(rows,
                                        [&](const auto& row) {
                                          return has_cell(row, info.name) &&
                                                 (has_cell(row, one.key) ||
                                                  (alone && row.find("none: `") != row.npos));
                                        }),
                    "docs/algorithms.md has no row for ", info.name, ":", one.key);
    }
  }
}

TEST_CASE("the page of plans names the algorithms that they try unasked, and those not") {
  const std::string page = text_of_file(SOTTO_DOCS "/planning.md");
  const std::size_t first = page.find("1. **Candidates**");
  REQUIRE(first != std::string::npos);
  const std::string named = page.substr(first, page.find(", on `ring`", first) - first);
  REQUIRE(named.size() < 700);
  const std::size_t others = page.find("Algorithms that are not tried");
  REQUIRE(others != std::string::npos);
  const std::string untried = page.substr(others, page.find("`refused`", others) - others);
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    CHECK(has_cell(named, info.name) == (!info.planned.compressors.empty() && !info.robust));
    CHECK(has_cell(untried, info.name) == info.planned.compressors.empty());
  }
}

TEST_CASE("the page of step rules has a row for each") {
  const auto rows = table_rows("step_rules.md");
  REQUIRE(rows.size() > 5);
  for (const StepRuleInfo& info : step_rules()) {
    CHECK_MESSAGE(
        std::ranges::any_of(rows, [&](const auto& row) { return has_cell(row, info.name); }),
        "docs/step_rules.md has no row for ", info.name);
  }
}

}  // namespace sotto::test::documents_test

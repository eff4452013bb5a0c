// The documents name what the registries have: docs/algorithms.md every algorithm with its keys,
// docs/step_rules.md every step rule, and passages of other pages all algorithms that can do
// something.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/optim/registry.h>
#include <sotto/optim/step_rule_info.h>

#include "support/document.h"

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

}  // namespace

TEST_CASE("the page of algorithms has a row for each, and one for each of its hyperparameters") {
  const auto rows = table_rows("algorithms.md");
  REQUIRE(rows.size() > 20);
  for (const AlgorithmInfo& info : algorithms()) {
    CHECK_MESSAGE(
        std::ranges::any_of(rows, [&](const auto& row) { return has_code(row, info.name); }),
        "docs/algorithms.md has no row for ", info.name);
    for (const Hyperparameter& one : info.hyperparameters) {
      // One that stands alone has its values' form in place of a key.
      const bool alone = one.kind == HyperparameterKind::text;
      CHECK_MESSAGE(std::ranges::any_of(rows,
                                        [&](const auto& row) {
                                          return has_code(row, info.name) &&
                                                 (has_code(row, one.key) ||
                                                  (alone && row.find("none: `") != row.npos));
                                        }),
                    "docs/algorithms.md has no row for ", info.name, ":", one.key);
    }
  }
}

TEST_CASE("passages name exactly the algorithms of which the registry says the same") {
  struct Passage {
    const char* page;
    const char* from;
    const char* to;
    bool (*holds)(const AlgorithmInfo& info);
  };
  using Info = AlgorithmInfo;
  for (const Passage& one : std::vector<Passage>{
           {"planning.md", "`fragments=2 sync-delay=T` behind gradients", "with such intervals",
            [](const Info& info) { return info.takes_fragments(); }},
           {"gpu.md", "**Algorithms.** ", "with every step rule",
            [](const Info& info) { return info.accelerated; }},
           {"local_steps.md", "## Streamed local steps", "wait for their exchange",
            [](const Info& info) { return info.takes_fragments(); }},
           {"local_steps.md", "where the paper sends two.", "take it, on any graph",
            [](const Info& info) { return info.takes_outer_after_mixing(); }},
           {"local_steps.md", "## Gradients that do not wait", "hide their exchanges",
            [](const Info& info) { return info.hides_behind == HidesBehind::next_gradient; }},
           {"local_steps.md", "The next model of", "needs the neighbours",
            [](const Info& info) { return info.takes_delayed_gradients(); }},
           {"performance.md", "(a million parameters: 3)", "`sotto train --buckets N`",
            [](const Info& info) { return info.takes_buckets(); }},
           {"performance.md", "**Behind the gradient.**", "go on with the next gradient",
            [](const Info& info) {
              return info.takes_buckets() && info.hides_behind == HidesBehind::next_gradient;
            }},
           {"performance.md", "on the wire; ", "do with `--delayed-gradient`",
            [](const Info& info) {
              return info.takes_buckets() && info.takes_delayed_gradients();
            }},
           {"step_rules.md", "to the nodes' steps.", "Other algorithms refuse it",
            [](const Info& info) { return info.takes_following_rules(); }}}) {
    const std::string named = passage(one.page, one.from, one.to);
    for (const AlgorithmInfo& info : algorithms()) {
      CAPTURE(one.page);
      CAPTURE(one.from);
      CAPTURE(std::string(info.name));
      CHECK(has_code(named, info.name) == one.holds(info));
    }
  }
}

TEST_CASE("the page of step rules has a row for each") {
  const auto rows = table_rows("step_rules.md");
  REQUIRE(rows.size() > 5);
  for (const StepRuleInfo& info : step_rules()) {
    CHECK_MESSAGE(
        std::ranges::any_of(rows, [&](const auto& row) { return has_code(row, info.name); }),
        "docs/step_rules.md has no row for ", info.name);
  }
}

}  // namespace sotto::test::documents_test

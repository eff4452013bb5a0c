// Which parts of a step's gradient may come.
#include "../../../trainers/internal/optimizer/step_parts.h"

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/optim/step_rule.h>

namespace sotto::test::step_parts_test {

using internal::StepParts;
using internal::StepSettings;

namespace {

ParameterLayout two_tensors() {
  ParameterLayout layout;
  append_block(layout, "first", {4, 4});
  append_block(layout, "second", {3});
  return layout;
}

}  // namespace

TEST_CASE("step parts: whole tensors where the rule needs them, any range where it does not") {
  const ParameterLayout layout = two_tensors();
  for (const bool whole : {false, true}) {
    CAPTURE(whole);
    const auto rule = make_step_rule({.rule = whole ? "muon" : "sgd"});
    const StepSettings settings(*rule, 0.1);
    const StepParts parts(layout, settings);
    CHECK_NOTHROW(parts.require(0, 16, true));
    CHECK_NOTHROW(parts.require(16, 3, true));
    CHECK_NOTHROW(parts.require(0, 19, true));
    CHECK_NOTHROW(parts.require(2, 0, true));
    for (const std::size_t first : {std::size_t{0}, std::size_t{15}, std::size_t{17}}) {
      if (whole) {
        CHECK_THROWS_WITH_AS(parts.require(first, 2, true), doctest::Contains("cuts the tensor"),
                             Error);
      } else {
        CHECK_NOTHROW(parts.require(first, 2, true));
      }
    }
    CHECK_THROWS_WITH_AS(parts.require(0, 16, false), doctest::Contains("gradients whole"), Error);
    CHECK_THROWS_AS(parts.require(16, 4, true), Error);
  }
}

TEST_CASE("step parts: a step ends with all parts, and the next begins without any") {
  const ParameterLayout layout = two_tensors();
  const auto rule = make_step_rule({});
  const StepSettings settings(*rule, 0.1);
  StepParts parts(layout, settings);
  CHECK(parts.empty());
  CHECK_NOTHROW(parts.require_none());
  parts.add(0, 16);
  CHECK_THROWS_WITH_AS(parts.require_none(), doctest::Contains("end this step by its parts"),
                       Error);
  CHECK_THROWS_AS(parts.require(8, 9, true), Error);
  CHECK_THROWS_AS(parts.require_all(), Error);
  parts.add(16, 3);
  CHECK_NOTHROW(parts.require_all());
  parts.clear();
  CHECK_NOTHROW(parts.require_none());
  CHECK_NOTHROW(parts.require(0, 16, true));
}

}  // namespace sotto::test::step_parts_test

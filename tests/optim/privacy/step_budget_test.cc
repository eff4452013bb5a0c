#include <sotto/optim/privacy/step_budget.h>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

namespace sotto::test::step_budget_test {

namespace {

PrivacyOptions promise() {
  PrivacyOptions options;
  options.clip_norm = 1;
  options.noise_multiplier = 4;
  options.epsilon = 3;
  return options;
}

}  // namespace

TEST_CASE("a budget of steps ends where the accountant says, and tells what is spent") {
  StepBudget budget(promise());
  REQUIRE(budget.allowed() == steps_within(promise().step(), 3, promise().delta));
  REQUIRE(budget.allowed() > 2);
  CHECK(budget.spent().epsilon == 0);
  while (!budget.exhausted()) {
    CHECK(budget.spent().left == budget.allowed() - budget.steps());
    budget.count_step();
  }
  CHECK(budget.steps() == budget.allowed());
  const PrivacySpent spent = budget.spent();
  CHECK(spent.steps == budget.allowed());
  CHECK(spent.left == 0);
  CHECK(spent.epsilon <= 3);
  CHECK(epsilon_spent(promise(), spent.steps + 1) > 3);
  CHECK(spent.delta == promise().delta);
  CHECK(budget.refusal().find("another step would exceed 3; nothing was sent") !=
        std::string::npos);
}

TEST_CASE("steps of a run that was lost are counted, and none is ever given back") {
  StepBudget budget(promise());
  budget.count_step();
  budget.spend_at_least(3);
  CHECK(budget.steps() == 3);
  budget.spend_at_least(1);
  CHECK(budget.steps() == 3);
  budget.spend_at_least(budget.allowed() + 5);
  CHECK(budget.exhausted());
  CHECK(budget.spent().left == 0);  // a longer budget may have been spent before
}

TEST_CASE("without an epsilon steps have no end, and settings out of range make no budget") {
  PrivacyOptions options = promise();
  options.epsilon.reset();
  StepBudget budget(options);
  budget.spend_at_least(1000);
  CHECK_FALSE(budget.exhausted());
  CHECK(budget.spent().left == kUnlimitedSteps);
  options.clip_norm = 0;
  CHECK_THROWS_AS(StepBudget{options}, Error);
  options = promise();
  options.noise_multiplier = 0.01;  // which does not cover a single step
  CHECK_THROWS_AS(StepBudget{options}, Error);
}

}  // namespace sotto::test::step_budget_test

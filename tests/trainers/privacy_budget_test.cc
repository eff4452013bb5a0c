#include <sotto/trainers/privacy_budget.h>

#include <filesystem>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "support/scratch.h"

namespace sotto::test::privacy_budget_test {

namespace {

PrivacyOptions promise(const std::string& ledger) {
  PrivacyOptions options;
  options.clip_norm = 1;
  options.noise_multiplier = 1;
  options.epsilon = 40;
  options.ledger = ledger;
  return options;
}

/// A budget as an optimizer or a site opens it when it starts.
PrivacyBudget opened(const PrivacyOptions& options) {
  return PrivacyBudget(std::make_shared<StepBudget>(options));
}

void spend(PrivacyBudget& budget, std::uint64_t steps) {
  for (std::uint64_t step = 0; step < steps; ++step) {
    REQUIRE(budget.enter_step().ok());
    budget.count_step();
  }
}

}  // namespace

TEST_CASE("a budget counts a step in its ledger before the step leaves") {
  const Scratch scratch;
  const auto options = promise((scratch.path() / "ledger").string());
  PrivacyBudget budget = opened(options);
  CHECK(budget.steps() == 0);
  CHECK_FALSE(std::filesystem::exists(options.ledger));
  for (int step = 0; step < 3; ++step) {
    REQUIRE(budget.enter_step().ok());
    CHECK(PrivacyLedger(options).steps() > budget.steps());
    budget.count_step();
  }
  CHECK(budget.spent().steps == 3);
  REQUIRE(budget.settle().ok());
  CHECK(PrivacyLedger(options).steps() == 3);
}

TEST_CASE("what a run has spent is spent in the next one, crash or not") {
  const Scratch scratch;
  const auto options = promise((scratch.path() / "ledger").string());
  {
    PrivacyBudget budget = opened(options);
    spend(budget, 4);
    REQUIRE(budget.settle().ok());
  }
  CHECK(opened(options).steps() == 4);
  {
    PrivacyBudget crashed = opened(options);
    spend(crashed, 1);  // and no settle: what was entered may have left
  }
  PrivacyBudget after = opened(options);
  CHECK(after.steps() > 5);
  CHECK(after.spent().epsilon == epsilon_spent(options, after.steps()));

  auto other = options;
  other.noise_multiplier = 2;
  CHECK_THROWS_WITH_AS(opened(other), doctest::Contains("kept under other settings"), Error);
}

TEST_CASE("an exhausted budget enters no further step, over all runs together") {
  const Scratch scratch;
  const auto options = promise((scratch.path() / "ledger").string());
  const std::uint64_t allowed = allowed_steps(options);
  REQUIRE(allowed > 2);
  {
    PrivacyBudget budget = opened(options);
    spend(budget, allowed - 1);
    REQUIRE(budget.settle().ok());
  }
  PrivacyBudget budget = opened(options);
  CHECK_FALSE(budget.exhausted());
  spend(budget, 1);
  CHECK(budget.exhausted());
  CHECK(budget.spent().left == 0);
  REQUIRE(budget.enter_step().ok());
  REQUIRE(budget.settle().ok());
  CHECK(PrivacyLedger(options).steps() == allowed);
  CHECK(opened(options).exhausted());
}

TEST_CASE("a saved state that has spent steps is not gone on from without its ledger") {
  const Scratch scratch;
  const auto options = promise((scratch.path() / "ledger").string());
  PrivacyBudget budget = opened(options);
  CHECK(budget.check_saved(0).ok());  // nothing was told: there need not be one
  const Status missing = budget.check_saved(7);
  CHECK(missing.fault() == Fault::malformed);
  CHECK(missing.message().find(options.ledger + " is missing") != std::string::npos);
  spend(budget, 1);
  CHECK(opened(options).check_saved(7).ok());
  CHECK(opened(promise("")).check_saved(7).ok());  // which keeps none
}

TEST_CASE("a step whose ledger cannot be written must not leave") {
  const Scratch scratch;
  PrivacyBudget budget = opened(promise((scratch.path() / "absent" / "ledger").string()));
  CHECK(budget.enter_step().fault() == Fault::io);
  CHECK(budget.steps() == 0);
}

}  // namespace sotto::test::privacy_budget_test

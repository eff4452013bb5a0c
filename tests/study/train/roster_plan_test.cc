// From the settings of a run whose nodes come and go to what a node does.
#include <sotto/study/train/roster_plan.h>

#include <chrono>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

namespace sotto::test::roster_plan_test {

using namespace sotto::study;

namespace {

/// Whether a run by roster has the setting.
bool roster_has(std::string_view setting) {
  TrainOptions options;
  options.task = "digits,train=100,test=20";
  options.algorithm = "pushsum";
  ElasticSettings settings;
  settings.roster.nodes = "1:2";
  settings.roster.seeds = "127.0.0.1:9";
  try {
    (void)make_roster_plan(options, {std::string(setting)}, settings);
  } catch (const Error& error) {
    CHECK(error.field() == setting);
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a run by roster has these of a run's settings, and refuses all others") {
  TrainOptions options;
  std::string taken;
  for (const SettingGroup& group : train_settings(options)) {
    for (const Setting& setting : group.settings) {
      if (roster_has(setting.name)) {
        taken += std::string(setting.name) + " ";
      }
    }
  }
  const std::string all =
      "task model batch gradient-time init scaling nodes timeout insecure key algorithm compressor "
      "consensus-stepsize rule step-rule lr momentum quasi-global-momentum nesterov weight-decay "
      "beta1 beta2 epsilon bias-correction trust-coefficient update-scale clip-norm schedule "
      "communication-interval outer-step-rule outer-lr outer-momentum outer-nesterov "
      "epochs rounds eval-every dump-parameters seed ";
  CHECK(taken == all);
  CHECK(roster_has("leave-within"));
  CHECK_FALSE(roster_has("nonsense"));
}

TEST_CASE("a run by roster has the timeout that was given, also that of other runs") {
  TrainOptions options;
  options.task = "digits,train=100,test=20";
  options.model = "softmax";
  options.algorithm = "allreduce";
  ElasticSettings settings;
  settings.roster.nodes = "1:2";
  settings.roster.seeds = "127.0.0.1:9";
  settings.roster.name = "a";
  const auto usual = make_roster_plan(options, {"algorithm"}, settings);
  REQUIRE(usual.epochs);
  CHECK(usual.epochs->timeout == ElasticOptions().timeout);
  // What the program's help shows as a default counts where somebody says it.
  options.timeout_s = TrainOptions().timeout_s;
  const auto given = make_roster_plan(options, {"algorithm", "timeout"}, settings);
  REQUIRE(given.epochs);
  CHECK(given.epochs->timeout == std::chrono::seconds(60));
  CHECK(given.epochs->timeout != ElasticOptions().timeout);

  options.algorithm = "pushsum";
  CHECK(make_roster_plan(options, {"algorithm"}, settings).run.timeout == std::chrono::seconds(10));
  CHECK(make_roster_plan(options, {"algorithm", "timeout"}, settings).run.timeout ==
        std::chrono::seconds(60));
}

TEST_CASE("local steps of one model: rounds are gradients, and the run's steps every H of them") {
  TrainOptions options;
  options.task = "digits,train=100,test=20";
  options.model = "softmax";
  options.algorithm = "allreduce";
  options.rounds = 25;
  options.eval_every = 11;
  options.communication_interval = 10;
  options.schedule = "cosine";
  ElasticSettings settings;
  settings.roster.nodes = "1:2";
  settings.roster.seeds = "127.0.0.1:9";
  settings.roster.name = "a";
  auto plan = make_roster_plan(options, {"algorithm"}, settings);
  REQUIRE(plan.epochs);
  CHECK(plan.epochs->rounds == 3);
  CHECK(plan.eval_every == 2);
  CHECK(plan.epochs->communication_interval == 10);
  CHECK(plan.epochs->step_rule.schedule.total == 30);
  REQUIRE(plan.epochs->outer_step_rule);
  CHECK(plan.epochs->outer_step_rule->rule == "sgd");
  CHECK(plan.epochs->outer_step_rule->learning_rate == 1);

  options.outer_lr = 0.7;
  options.outer_momentum = 0.9;
  options.outer_nesterov = true;
  plan = make_roster_plan(options, {"algorithm"}, settings);
  CHECK(plan.epochs->outer_step_rule->learning_rate == 0.7);
  CHECK(plan.epochs->outer_step_rule->momentum == 0.9);
  CHECK(plan.epochs->outer_step_rule->nesterov);
}

}  // namespace sotto::test::roster_plan_test

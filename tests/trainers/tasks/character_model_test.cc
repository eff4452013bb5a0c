// What the transformer is there for: a model on which Adam is clearly better than SGD, so that an
// algorithm which claims Adam's curve can be held to it.
#include <algorithm>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include <sotto/trainers/run.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "support/scratch.h"
#include "support/skip.h"

namespace sotto::test::character_model_test {

namespace {

struct Ended {
  double loss = 0;
  double bytes = 0;  // sent by node 0
};

Ended trained(const TaskFactory& tasks, const std::string& algorithm, const std::string& rule,
              double learning_rate, double momentum = 0) {
  RunOptions options;
  options.optimizer.transport = "inproc";
  options.optimizer.nodes = tasks.options().nodes;
  options.optimizer.algorithm = algorithm;
  options.optimizer.step_rule.rule = rule;
  options.optimizer.step_rule.learning_rate = learning_rate;
  options.optimizer.step_rule.momentum = momentum;
  options.optimizer.step_rule.schedule.warmup = 30;
  if (algorithm == "apmsqueeze") {
    options.optimizer.algorithm = "apmsqueeze:freeze=60";
  }
  options.rounds = 400;
  const auto result = run_threads(options, [&](Rank rank) { return tasks.make(rank); }, {});
  CAPTURE(result.status().message());
  REQUIRE(result.ok());
  return {.loss = result->final.loss,
          .bytes = static_cast<double>(result->bytes_sent_per_node().front())};
}

}  // namespace

TEST_CASE("on Shakespeare Adam beats SGD with momentum, and APMSqueeze keeps Adam's loss") {
  const auto folder = test::real_data();
  if (!folder) {
    SOTTO_SKIP("SOTTO_DATA is not set");
  }
  const auto data =
      load_task("text:" + (*folder / "shakespeare" / "input.txt").string() + ",context=16");
  const TaskFactory tasks(data, {.model = "transformer:1,32,2", .batch = 8, .nodes = 4});
  const Ended adam = trained(tasks, "allreduce", "adam", 0.003);
  const Ended squeezed = trained(tasks, "apmsqueeze", "adam", 0.003);
  const double sgd = std::min(trained(tasks, "allreduce", "sgd", 0.1, 0.9).loss,
                              trained(tasks, "allreduce", "sgd", 0.3, 0.9).loss);
  INFO("adam ", adam.loss, ", apmsqueeze ", squeezed.loss, ", sgd ", sgd);
  CHECK(adam.loss < sgd - 0.04);
  CHECK(squeezed.loss < adam.loss + 0.04);
  CHECK(squeezed.bytes < adam.bytes / 4);
}

}  // namespace sotto::test::character_model_test

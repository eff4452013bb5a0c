// `auto:BYTES` as a compressor of runs (study/train/auto_compressor.h).
#include <sotto/study/train/auto_compressor.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/comm/stores.h>
#include <sotto/compress/per_tensor.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/study/train/agreed_compressor.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::test::auto_compressor_test {

using namespace sotto::study;

namespace {

TrainOptions job(const std::string& algorithm, const std::string& compressor) {
  TrainOptions options;
  options.algorithm = algorithm;
  options.compressor = compressor;
  options.nodes = 4;
  options.rounds = 20;
  options.local = true;
  return options;
}

std::string refusal(const TrainOptions& options) {
  try {
    (void)make_train_plan(options);
  } catch (const Error& error) {
    CHECK(error.field() == "compressor");
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a budget of bytes becomes a compressor that fits into it, the same each time") {
  for (const char* algorithm : {"dcd", "choco", "deepsqueeze"}) {
    CAPTURE(algorithm);
    const TrainPlan plan = make_train_plan(job(algorithm, "auto:15000"));
    const std::string spec = plan.run.optimizer.compressor;
    CHECK(is_per_tensor(spec));
    CHECK(make_train_plan(job(algorithm, "auto:15000")).run.optimizer.compressor == spec);
    const auto task = plan.tasks->make(0);
    CHECK(make_compressor(spec, ContractKind::any, host_ops(), task->layout())
              ->max_bytes(task->dimension()) <= 15000);
  }
}

TEST_CASE("a frame of several encodings has the budget, not each of them") {
  for (const std::string algorithm : {"beer", "choco"}) {
    CAPTURE(algorithm);
    constexpr std::size_t kBudget = 30'000;
    const TrainPlan plan = make_train_plan(job(algorithm, "auto:30000"));
    const auto task = plan.tasks->make(0);
    const std::size_t encoding = make_compressor(plan.run.optimizer.compressor, ContractKind::any,
                                                 host_ops(), task->layout())
                                     ->max_bytes(task->dimension());
    const int encodings = algorithm_info(algorithm).encodings_a_frame;
    CHECK(encodings == (algorithm == "beer" ? 2 : 1));
    CHECK(static_cast<std::size_t>(encodings) * encoding <= kBudget);
  }
}

TEST_CASE("more bytes never give a larger error") {
  const TrainPlan plan = make_train_plan(job("choco", "none"));
  const auto task = plan.tasks->make(0);
  std::vector<float> start(task->dimension());
  task->initialize(start, 0);
  double before = 2;
  for (const int bytes : {7000, 9000, 15'000, 30'000, 70'000, 300'000}) {
    OptimizerOptions options = plan.run.optimizer;
    options.compressor = "auto:" + std::to_string(bytes);
    const BudgetedCompressor found = choose_compressor(options, *task, start);
    CAPTURE(found.spec);
    CHECK(found.relative_error <= before);
    before = found.relative_error;
  }
  CHECK(before == 0);
}

namespace {

/// Three nodes of a launched job that agree on their compressor, and what became of them.
struct Agreement {
  TrainPlan plan = make_train_plan(job("choco", "auto:15000"));
  std::vector<TrainPlan> plans;
  std::vector<Status> statuses{3};

  Agreement() {
    plan.run.optimizer.nodes = 3;
    plan.run.optimizer.store = make_memory_store();
    plans.assign(3, plan);
    for (Rank rank = 0; rank < 3; ++rank) {
      TrainPlan& own = plans[static_cast<std::size_t>(rank)];
      own.launched = LaunchedNode{.rank = rank, .nodes = 3, .rendezvous = {}, .source = {}};
      own.run.optimizer.rank = rank;
    }
  }
  void meet() {
    std::vector<std::thread> nodes;
    nodes.reserve(3);
    for (std::size_t i = 0; i < 3; ++i) {
      nodes.emplace_back([this, i] {
        auto agreed = with_agreed_compressor(plans[i]);
        statuses[i] = agreed.ok() ? Status() : agreed.status();
        if (agreed.ok()) {
          plans[i] = std::move(*agreed);
        }
      });
    }
    for (std::thread& node : nodes) {
      node.join();
    }
  }
};

}  // namespace

TEST_CASE("nodes of a launched job take what node 0 chose, whatever they found themselves") {
  Agreement nodes;
  const std::string chosen = nodes.plan.run.optimizer.compressor;
  nodes.plans[2].run.optimizer.compressor = "quant:8";  // as with another processor
  nodes.meet();
  for (std::size_t i = 0; i < 3; ++i) {
    const TrainPlan& own = nodes.plans[i];
    CAPTURE(nodes.statuses[i].message());
    CHECK(nodes.statuses[i].ok());
    CHECK(own.run.optimizer.compressor == chosen);
    CHECK(own.run.optimizer.algorithm == nodes.plan.run.optimizer.algorithm);
    CHECK(own.run.optimizer.store == nodes.plan.run.optimizer.store);
    CHECK(own.options.compressor == "auto:15000");
  }
}

TEST_CASE("nodes of a launched job with other budgets refuse, and say which node has which") {
  Agreement nodes;
  nodes.plans[2].options.compressor = "auto:9000";
  nodes.meet();
  for (const Status& status : nodes.statuses) {
    CHECK(status.fault() == Fault::unexpected);
    CHECK(status.message().find("node 2 was started with auto:9000, and node 0 with auto:15000") !=
          std::string::npos);
  }
}

TEST_CASE("a budget that cannot be one, or where it cannot be kept, is refused") {
  for (const char* spec : {"auto:", "auto:0", "auto:-3", "auto:1e4", "auto:20k"}) {
    CAPTURE(spec);
    CHECK(refusal(job("choco", spec)).find("positive whole number") != std::string::npos);
  }
  CHECK(refusal(job("choco", "auto:20")).find("bytes at least") != std::string::npos);
  CHECK(refusal(job("qmean", "auto:2000")).find("chunks") != std::string::npos);
  CHECK(refusal(job("allreduce", "auto:2000")).find("takes full precision only") !=
        std::string::npos);
  TrainOptions secret = job("choco", "auto:2000");
  secret.privacy_epsilon = 3;
  secret.clip_norm = 1;
  CHECK(refusal(secret).find("privacy budget") != std::string::npos);
  TrainOptions timed = job("choco", "auto:2000");
  timed.deal = false;
  CHECK(refusal(timed).find("timing only") != std::string::npos);
}

}  // namespace sotto::test::auto_compressor_test

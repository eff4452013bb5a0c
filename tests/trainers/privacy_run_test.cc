// Training under a privacy budget: where it ends, what is saved, and that nothing is given back.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/trainers/files/checkpoint.h>
#include <sotto/trainers/files/privacy_ledger.h>
#include <sotto/trainers/run.h>
#include <sotto/trainers/tasks/quadratic.h>

#include "support/scratch.h"
#include "trainers/nodes.h"
#include "trainers/watcher.h"

namespace sotto::test::privacy_run_test {

namespace {

constexpr int kNodes = 3;
constexpr std::size_t kDimension = 20;

TaskOfNode tasks() {
  auto made = std::make_shared<QuadraticProblem>();
  made->start.assign(kDimension, 0.5F);
  for (int i = 0; i < kNodes; ++i) {
    made->nodes.push_back(
        {std::vector<double>(kDimension, 0.5), std::vector<double>(kDimension, 1.0 + i)});
  }
  return [made](Rank rank) { return std::make_unique<QuadraticTask>(made, rank); };
}

PrivacyOptions budget(double epsilon) {
  PrivacyOptions options;
  options.clip_norm = 1;
  options.noise_multiplier = 3;
  options.epsilon = epsilon;
  options.test_seed = 8;
  return options;
}

RunOptions run_options(Round rounds) {
  RunOptions options;
  options.optimizer.nodes = kNodes;
  options.optimizer.algorithm = "choco";
  options.optimizer.compressor = "topk:0.25";
  options.optimizer.step_rule.learning_rate = 0.05;
  options.optimizer.privacy = budget(6);
  options.rounds = rounds;
  return options;
}

RunResult completed(const RunOptions& options, const RunHooks& hooks = {}) {
  auto result = run_threads(options, tasks(), hooks);
  CAPTURE(result.status().message());
  REQUIRE(result.ok());
  return *result;
}

std::uint64_t allowed() { return allowed_steps(budget(6)); }

}  // namespace

TEST_CASE("a run ends in good order after the last step that its budget covers") {
  REQUIRE(allowed() > 5);
  auto options = run_options(allowed() + 10);
  Watcher watcher;
  const RunResult result = completed(options, {.observer = &watcher});
  CHECK(contains(watcher.warned, "spent after round " + std::to_string(allowed())));
  CHECK(result.rounds == allowed());
  CHECK(result.history.back().round == allowed());
  REQUIRE(result.privacy.has_value());
  CHECK(result.privacy->steps == allowed());
  CHECK(result.privacy->left == 0);
  CHECK(result.privacy->epsilon <= 6);
  CHECK(epsilon_spent(budget(6), allowed() + 1) > 6);

  options.rounds = allowed();
  CHECK(completed(options).parameters_sha256 == result.parameters_sha256);
  options.optimizer.privacy.reset();
  CHECK_FALSE(completed(options).privacy.has_value());
}

TEST_CASE("an optimizer refuses the step beyond the budget, and sends nothing of it") {
  std::vector<float> x(4, 1.0F);
  OptimizerOptions options;
  options.algorithm = "dpsgd";
  options.transport = "inproc";
  options.nodes = 1;
  options.store = make_memory_store();
  options.privacy = budget(6);
  Optimizer optimizer(options, x);
  const std::vector<float> gradient(4, 0.1F);
  for (std::uint64_t step = 0; step < allowed(); ++step) {
    CHECK(optimizer.privacy()->left == allowed() - step);
    REQUIRE(optimizer.step(gradient).ok());
  }
  const std::vector<float> before = x;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Status status = optimizer.step(gradient);
    CHECK(status.fault() == Fault::budget);
    CHECK(contains(status.message(), "nothing was sent"));
  }
  CHECK(x == before);
  CHECK(optimizer.round() == allowed());
  CHECK(optimizer.finish().ok());
}

TEST_CASE("a resumed private run ends as an uninterrupted one when the noise is that of a seed") {
  const Scratch scratch;
  auto options = run_options(12);
  const RunResult whole = completed(options);
  options.checkpoint = scratch.path().string();
  options.rounds = 7;
  completed(options);
  CHECK(std::filesystem::exists(scratch.path() / "node-2.privacy"));
  options.rounds = 12;
  options.resume = true;
  const RunResult resumed = completed(options);
  CHECK(resumed.parameters_sha256 == whole.parameters_sha256);
  CHECK(resumed.privacy->steps == 12);
  CHECK(resumed.privacy->epsilon == whole.privacy->epsilon);
}

TEST_CASE("an old checkpoint gives nothing of the budget back") {
  const Scratch scratch;
  const Scratch aside;
  auto options = run_options(4);
  options.checkpoint = scratch.path().string();
  completed(options);
  std::vector<std::filesystem::path> old;
  for (Rank rank = 0; rank < kNodes; ++rank) {
    const std::string name = "node-" + std::to_string(rank) + ".round-4.checkpoint";
    std::filesystem::copy(scratch.path() / name, aside.path() / name);
    old.emplace_back(name);
  }
  options.rounds = 9;
  options.resume = true;
  completed(options);

  // The state of round 4 is put back, and the ledgers know of round 9.
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path())) {
    if (entry.path().extension() == ".checkpoint") {
      std::filesystem::remove(entry.path());
    }
  }
  for (const auto& name : old) {
    std::filesystem::copy(aside.path() / name, scratch.path() / name);
  }
  options.rounds = allowed() + 100;
  const RunResult result = completed(options);
  CHECK(result.rounds == 4 + allowed() - 9);
  CHECK(result.privacy->steps == allowed());
  CHECK(result.privacy->epsilon <= 6);

  // Without its ledger a node does not know what it told, and does not go on.
  std::filesystem::remove(scratch.path() / "node-1.privacy");
  const auto refused = run_threads(options, tasks(), {});
  CHECK(contains(refused.status().message(), "node-1.privacy is missing"));
}

TEST_CASE("a crash before the first checkpoint costs what was entered") {
  const Scratch scratch;
  auto options = run_options(allowed() + 100);
  options.checkpoint = scratch.path().string();
  for (Rank rank = 0; rank < kNodes; ++rank) {
    PrivacyOptions privacy = budget(6);
    privacy.ledger = (scratch.path() / ("node-" + std::to_string(rank) + ".privacy")).string();
    REQUIRE(PrivacyLedger(privacy).settle(rank == 1 ? 5 : 2).ok());
  }
  const RunResult result = completed(options);
  CHECK(result.rounds == allowed() - 5);  // the node that spent most ends it for all
  CHECK(result.privacy->steps == allowed());
}

TEST_CASE("a run whose budget was spent before its first round evaluates, and traces no other") {
  const Scratch scratch;
  auto options = run_options(allowed() + 100);
  options.checkpoint = scratch.path().string();
  PrivacyOptions privacy = budget(6);
  privacy.ledger = (scratch.path() / "node-1.privacy").string();
  REQUIRE(PrivacyLedger(privacy).settle(allowed()).ok());
  Watcher watcher;
  watcher.phases = true;
  const auto result = run_threads(options, tasks(), {.observer = &watcher});
  CAPTURE(result.status().message());
  REQUIRE(result.ok());
  CHECK(result->rounds == 0);
  REQUIRE(watcher.spans.size() == kNodes);
  for (const PhaseSpan& span : watcher.spans) {
    CHECK(span.phase == RunPhase::evaluation);
    CHECK(span.round == 0);
  }
}

TEST_CASE("a checkpoint of one promise is not gone on from under another") {
  const Scratch scratch;
  auto options = run_options(4);
  options.checkpoint = scratch.path().string();
  completed(options);
  options.resume = true;
  options.optimizer.privacy->epsilon = 60;
  CHECK(contains(refusal([&] { (void)run_threads(options, tasks(), {}); }),
                 "privacy-epsilon is 60 here and 6 there"));
  options.optimizer.privacy.reset();
  CHECK(contains(refusal([&] { (void)run_threads(options, tasks(), {}); }), "privacy-unit"));
}

}  // namespace sotto::test::privacy_run_test

#include <sotto/trainers/run.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/digest.h>
#include <sotto/base/start_threads.h>
#include <sotto/trainers/files/checkpoint.h>
#include <sotto/trainers/files/parameter_file.h>
#include <sotto/trainers/tasks/quadratic.h>

#include "support/scratch.h"
#include "trainers/nodes.h"
#include "trainers/watcher.h"

namespace sotto::test::run_test {

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kDimension = 30;

std::shared_ptr<const QuadraticProblem> problem() {
  auto made = std::make_shared<QuadraticProblem>();
  made->start.assign(kDimension, 0.5F);
  for (int i = 0; i < kNodes; ++i) {
    QuadraticProblem::Node node;
    for (std::size_t k = 0; k < kDimension; ++k) {
      node.h.push_back(0.1 + 0.03 * static_cast<double>(k));
      node.c.push_back(1 + 0.5 * i + 0.1 * static_cast<double>(k));
    }
    made->nodes.push_back(std::move(node));
  }
  return made;
}

TaskOfNode tasks() {
  return [shared = problem()](Rank rank) { return std::make_unique<QuadraticTask>(shared, rank); };
}

RunOptions run_options(Round rounds) {
  RunOptions options;
  options.optimizer.nodes = kNodes;
  options.optimizer.step_rule.learning_rate = 0.05;
  options.rounds = rounds;
  options.eval_every = 5;
  return options;
}

RunResult completed(const RunOptions& options, const RunHooks& hooks = {}) {
  auto result = run_threads(options, tasks(), hooks);
  CAPTURE(result.status().message());
  REQUIRE(result.ok());
  return *result;
}

void flip_a_bit(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(100);
  const auto byte = static_cast<char>(file.get() ^ 4);
  file.seekp(100);
  file.put(byte);
}

/// A quadratic whose node 2 has a NaN in its gradient of round 6.
class Poisoned final : public Task {
 public:
  Poisoned(std::unique_ptr<Task> task, Rank rank) : task_(std::move(task)), rank_(rank) {}
  const ParameterLayout& layout() const override { return task_->layout(); }
  void initialize(std::span<float> x, std::uint64_t seed) const override {
    task_->initialize(x, seed);
  }
  Round rounds_per_epoch() const override { return 1; }
  double loss_and_gradient(Round round, std::span<const float> x, std::span<float> g) override {
    const double loss = task_->loss_and_gradient(round, x, g);
    if (rank_ == 2 && round == 6) {
      g[11] = std::numeric_limits<float>::quiet_NaN();
    }
    return loss;
  }
  Evaluation evaluate(std::span<const float> x) override { return task_->evaluate(x); }

 private:
  std::unique_ptr<Task> task_;
  Rank rank_;
};

}  // namespace

TEST_CASE("a run reports the averaged model, what was sent, and each node's digest") {
  const Scratch scratch;
  auto options = run_options(12);
  options.optimizer.algorithm = "dpsgd";
  options.dump_parameters = (scratch.path() / "models.csv").string();
  const RunResult result = completed(options);

  // The file holds what the nodes ended with.
  std::ifstream file(options.dump_parameters);
  std::vector<std::vector<float>> models;
  for (std::string line; std::getline(file, line);) {
    const auto row = scratch.write("row.csv", line).string();
    models.push_back(read_parameter_row(row, kDimension));
    CHECK(result.parameters_sha256[models.size() - 1] ==
          sha256_hex(std::as_bytes(std::span(models.back()))));
  }
  REQUIRE(models.size() == kNodes);

  std::vector<float> mean(kDimension);
  double distance = 0;
  for (std::size_t k = 0; k < kDimension; ++k) {
    double sum = 0;
    for (const auto& model : models) {
      sum += double{model[k]};
    }
    mean[k] = static_cast<float>(sum / kNodes);
    for (const auto& model : models) {
      distance += std::pow(double{model[k]} - double{mean[k]}, 2) / kNodes;
    }
  }
  CHECK(result.final.consensus_distance == doctest::Approx(distance));
  CHECK(result.final.loss == doctest::Approx(problem()->objective(mean)));
  CHECK(std::isnan(result.final.accuracy));

  CHECK(result.dimension == kDimension);
  REQUIRE(result.history.size() == 3);
  CHECK(result.history[0].round == 5);
  CHECK(result.history[2].round == 12);
  // A ring: two neighbours, a frame of 64 bytes and the model each round.
  CHECK(result.edges.size() == 2 * kNodes);
  const std::uint64_t expected = 12 * 2 * (64 + 4 * kDimension);
  CHECK(result.bytes_sent_per_node() == std::vector<std::uint64_t>(kNodes, expected));
  CHECK(result.frames_sent_per_node() == std::vector<std::uint64_t>(kNodes, 24));
  CHECK(result.history[2].bytes_per_node == static_cast<double>(expected));
}

TEST_CASE("a resumed run ends as an uninterrupted one, bit for bit, for every algorithm and rule") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const char* rule : {"sgd", "adam"}) {
      CAPTURE(info.name);
      CAPTURE(rule);
      const Scratch scratch;
      auto options = run_options(20);
      options.optimizer.lazy = info.eigenvalues_above > -1;
      options.optimizer.step_rule.rule = rule;
      options.optimizer.step_rule.momentum = options.optimizer.step_rule.rule == "sgd" ? 0.9 : 0;
      choose(options.optimizer, info);
      const RunResult whole = completed(options);

      options.checkpoint = scratch.path().string();
      options.rounds = 11;
      completed(options);
      options.rounds = 20;
      options.resume = true;
      const RunResult resumed = completed(options);
      CHECK(resumed.parameters_sha256 == whole.parameters_sha256);
      CHECK(resumed.bytes_sent_per_node() == whole.bytes_sent_per_node());
      CHECK(resumed.final.loss == whole.final.loss);
      CHECK(resumed.final.consensus_distance == whole.final.consensus_distance);
      REQUIRE(resumed.history.size() == 5);  // 5, 10, 11, 15, 20
      CHECK(resumed.history[1].loss == whole.history[1].loss);
    }
  }
}

TEST_CASE("a resumed run passes over a damaged checkpoint that has one before it") {
  const Scratch scratch;
  auto options = run_options(20);
  const RunResult whole = completed(options);
  options.checkpoint = scratch.path().string();
  options.checkpoint_every = 4;
  options.rounds = 9;
  completed(options);  // leaves rounds 8 and 9
  flip_a_bit((scratch.path() / "node-2.round-9.checkpoint").string());
  options.rounds = 20;
  options.resume = true;
  Watcher watcher;
  CHECK(completed(options, {.observer = &watcher}).parameters_sha256 == whole.parameters_sha256);
  CHECK(contains(watcher.warned, "resuming from round 8"));
  CHECK(contains(watcher.warned, "node-2.round-9.checkpoint"));
  CHECK(CheckpointFolder(options.checkpoint, 2).rounds() == std::vector<Round>{20, 16});
}

TEST_CASE("a run that was complete when it was saved gives its result again") {
  const Scratch scratch;
  auto options = run_options(10);
  options.checkpoint = scratch.path().string();
  const RunResult first = completed(options);
  options.resume = true;
  const RunResult again = completed(options);
  CHECK(again.parameters_sha256 == first.parameters_sha256);
  CHECK(again.history.size() == first.history.size());
  CHECK(again.bytes_sent_per_node() == first.bytes_sent_per_node());
}

TEST_CASE("checkpoints that cannot be gone on from are refused, and none is overwritten") {
  const Scratch scratch;
  auto options = run_options(10);
  options.checkpoint = scratch.path().string();
  options.resume = true;
  const auto refused = [&] { return refusal([&] { (void)run_threads(options, tasks(), {}); }); };
  CHECK(contains(refused(), "there is no checkpoint yet in " + options.checkpoint));
  options.resume = false;
  completed(options);
  CHECK(contains(refused(), "holds an earlier run"));
  options.resume = true;
  options.rounds = 9;
  CHECK(contains(refused(), "of round 10, the run ends at round 9"));
  options.rounds = 20;
  options.optimizer.step_rule.learning_rate = 0.25;
  CHECK(contains(refused(), "lr is 0.25 here and 0.05 there"));
  options.optimizer.step_rule.learning_rate = 0.05;
  std::filesystem::remove(scratch.path() / "node-1.round-10.checkpoint");
  CHECK(contains(refused(), "node 1 has no whole checkpoint"));
  flip_a_bit((scratch.path() / "node-0.round-10.checkpoint").string());
  CHECK(contains(refused(), "damaged"));
}

TEST_CASE("a stopped run ends everywhere and leaves its checkpoint") {
  const Scratch scratch;
  auto options = run_options(1'000'000);
  options.eval_every = 0;
  options.checkpoint = scratch.path().string();
  options.checkpoint_every = 5;
  std::atomic<bool> stop{false};
  Watcher watcher;
  watcher.after_round = [&](Round done) { stop = done >= 12; };
  const auto result = run_threads(options, tasks(), {.observer = &watcher, .stop = &stop});
  CHECK(result.status().fault() == Fault::ended);
  CHECK(contains(result.status().message(), "told to stop; round "));
  // All have saved the round at which they stopped, whatever was due.
  const auto last = [&](Rank rank) {
    const auto rounds = CheckpointFolder(options.checkpoint, rank).rounds();
    return rounds.empty() ? Round{0} : *std::max_element(rounds.begin(), rounds.end());
  };
  CHECK(last(0) >= 12);
  for (Rank rank = 1; rank < kNodes; ++rank) {
    CHECK(last(rank) == last(0));
  }
}

TEST_CASE("a node that waits for others before its first round ends once it is told to stop") {
  for (const bool saves : {false, true}) {
    CAPTURE(saves);
    const Scratch scratch;
    auto options = run_options(10);
    options.optimizer.transport = "inproc";
    options.optimizer.store = make_memory_store();
    options.optimizer.timeout = std::chrono::hours(1);  // nobody else ever comes
    options.checkpoint = saves ? scratch.path().string() : "";
    const std::atomic<bool> stop{true};
    const auto task = tasks()(0);
    const auto result = run_node(options, *task, {.observer = nullptr, .stop = &stop});
    CHECK(result.status().fault() == Fault::stopped);
    CHECK(result.status().message() == "node 0: stopped while waiting for node 1, 2, 3");
  }
}

TEST_CASE("of several faults the one is told that explains the others") {
  const auto inner = tasks();
  auto options = run_options(20);
  options.optimizer.timeout = std::chrono::hours(1);  // nobody is to wait for it
  const auto result = run_threads(
      options, [&](Rank rank) { return std::make_unique<Poisoned>(inner(rank), rank); }, {});
  CHECK(result.status().fault() == Fault::non_finite);
  CHECK(result.status().message().starts_with("node 2, round 6: the gradient"));
  const Status faults[] = {{}, {Fault::deadline, "a"}, {Fault::peer_lost, "b"}, {Fault::io, "c"}};
  CHECK(root_cause(faults).message() == "c");
  CHECK(root_cause(std::span(faults).first(3)).message() == "a");
  CHECK(root_cause(std::span(faults).first(1)).ok());
}

TEST_CASE("one host runs so many nodes and no more") {
  auto options = run_options(1);
  for (const int nodes : {-1, 0, kMostLocalNodes + 1}) {
    options.optimizer.nodes = nodes;
    CHECK(contains(refusal([&] { (void)run_threads(options, tasks(), {}); }), "1 to 1024"));
  }
}

TEST_CASE("a run can start from given parameters, of the right number") {
  auto options = run_options(1);
  options.start.assign(kDimension, 3.0F);
  const RunResult there = completed(options);
  options.start.clear();
  CHECK(completed(options).parameters_sha256 != there.parameters_sha256);
  options.start.assign(kDimension + 1, 3.0F);
  CHECK(contains(refusal([&] { (void)run_threads(options, tasks(), {}); }), "31 parameters"));
}

TEST_CASE(
    "whichever node's thread the system does not give, the run is refused, and the next works") {
  for (std::size_t starts = 0; starts < kNodes; ++starts) {
    CAPTURE(starts);
    const auto said = [&] {
      const ThreadShortage shortage(starts);
      return refusal([] { (void)run_threads(run_options(3), tasks(), {}); });
    }();
    CAPTURE(said);
    CHECK(
        contains(said, "threads for nodes: the system gave " + std::to_string(starts) + " of 4 "));
  }
  (void)completed(run_options(3));
}

}  // namespace sotto::test::run_test

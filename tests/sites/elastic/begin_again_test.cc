// Most or all nodes of an all-reduce whose nodes come and go are gone, over real channels: those
// that are there begin another run from the newest model.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/sites/elastic/elastic_optimizer.h>
#include <sotto/sites/elastic/elastic_state.h>

#include "optim/cluster.h"
#include "support/free_port.h"
#include "support/scratch.h"
#include "support/seed.h"

namespace sotto::test::begin_again_test {

namespace {

constexpr std::size_t kNodes = 3;
constexpr std::size_t kDimension = 37;
constexpr std::chrono::milliseconds kAgain{300};

ElasticOptions options_for(std::size_t node, const std::string& seed) {
  ElasticOptions options;
  options.name = "n" + std::to_string(node);
  options.roster = {.least = kNodes, .most = kNodes, .seeds = {seed}};
  options.listen = node == 0 ? seed : "127.0.0.1:0";
  options.step_rule = {.rule = "adam", .learning_rate = 0.05};
  options.seed = 11;
  options.begin_again_after = kAgain;
  options.wait_limit = std::chrono::minutes(2);  // a test that fails ends
  return options;
}

/// What the bits of a run that was begun again are compared for.
struct Case {
  Round interval = 1;
  std::optional<StepRuleOptions> outer{};
};

/// A run of fixed members that dies as a whole after step `dies_at`, and is begun again.
class Interrupted {
 public:
  Interrupted(const Case& now, Round dies_at, Round rounds)
      : now_(now), dies_at_(dies_at), rounds_(rounds) {}

  /// What nodes of a fixed number come to, which nothing interrupts.
  std::vector<float> reference() {
    const StepRuleOptions as_it_is{.rule = "sgd", .learning_rate = 1};
    const bool local = now_.interval > 1 || now_.outer;
    Cluster cluster(
        {.algorithm = "allreduce",
         .nodes = kNodes,
         .dimension = kDimension,
         .step = {.rule = "adam", .learning_rate = 0.05},
         .communication_interval = now_.interval,
         .outer_step = local ? std::optional(now_.outer.value_or(as_it_is)) : std::nullopt,
         .seed = 11,
         .allow_contract_violation = true});
    start_ = cluster.x[0];
    REQUIRE(cluster.driver.run(rounds_ * now_.interval, gradient_).ok());
    return cluster.x[0];
  }
  /// The members of the latest life, eldest first.
  const std::vector<std::string>& order() const { return order_; }
  /// All nodes in one life, each from its own folder; what they have come to.
  std::vector<std::vector<float>> live(bool dies) {
    std::latch all(kNodes);
    std::vector<std::future<std::vector<float>>> nodes;
    for (std::size_t k = 0; k < kNodes; ++k) {
      nodes.push_back(
          std::async(std::launch::async, [this, k, dies, &all] { return node(k, dies, all); }));
    }
    std::vector<std::vector<float>> models;
    models.reserve(kNodes);
    for (auto& node : nodes) {
      models.push_back(node.get());
    }
    return models;
  }

 private:
  std::vector<float> node(std::size_t k, bool dies, std::latch& all) {
    ElasticOptions options = options_for(k, seed_);
    options.communication_interval = now_.interval;
    options.outer_step_rule = now_.outer;
    options.state = scratch_.path() / options.name;
    options.save_every = 4;
    options.rounds = rounds_;
    // Only the model of the node that begins counts.
    std::vector<float> x = k == 0 && dies ? start_ : std::vector<float>(kDimension, 7);
    ElasticOptimizer node(options, x);
    Status status = node.connect();
    CHECK_MESSAGE(status.ok(), status.message());
    CHECK((dies || (node.round() >= dies_at_ - dies_at_ % 4 && node.round() <= dies_at_)));
    std::vector<std::string> members;
    std::vector<float> g(kDimension);
    while (status.ok() && !node.over() && (!dies || node.round() < dies_at_)) {
      const auto seen = node.report().epoch->members;
      members = seen.empty() ? members : seen;
      const auto place = std::ranges::find(members, options.name) - members.begin();
      {
        const std::lock_guard lock(mutex_);
        gradient_(static_cast<Rank>(place), node.next_step(), x, g);
        order_ = members.size() == kNodes ? members : order_;
      }
      status = node.step(g).status();
    }
    CHECK_MESSAGE(status.ok(), status.message());
    all.arrive_and_wait();
    if (!dies) {
      CHECK(node.finish().ok());
    }
    return x;  // its destructor leaves as a process that dies does
  }

  const Case now_;
  const Round dies_at_;
  const Round rounds_;
  const Quadratic task_{kNodes, kDimension, 3, 0.2};
  const GradientFunction gradient_ = task_;
  std::mutex mutex_;
  std::vector<std::string> order_;
  std::vector<float> start_;
  const Scratch scratch_;
  const std::string seed_ = "127.0.0.1:" + std::to_string(free_port());
};

/// A node that trains in a thread until it is told to die.
class Node {
 public:
  explicit Node(const ElasticOptions& options)
      : options_(options),
        x_(kDimension, 1),
        optimizer_(std::make_unique<ElasticOptimizer>(stopping(), x_)),
        thread_([this] { train(); }) {}
  ~Node() { die(); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void die() {
    if (optimizer_) {
      dies_ = true;
      thread_.join();
      optimizer_.reset();
    }
  }
  Round round() const { return round_; }
  /// Whether it has ended by a fault.
  bool ended() const { return ended_; }
  SiteReport report() const { return optimizer_->report(); }
  /// Until it has made a step after `step`.
  void await(Round step) const {
    while (round_ <= step) {
      REQUIRE_MESSAGE(!ended_, options_.name, ": ", words_);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  /// The first step that it made itself.
  Round first() const { return first_; }
  const std::vector<float>& model() const { return x_; }

 private:
  ElasticOptions stopping() {
    options_.stop = &dies_;
    return options_;
  }
  void train() {
    std::vector<float> g(kDimension);
    Status status = optimizer_->connect();
    first_ = optimizer_->round() + 1;
    while (status.ok() && !optimizer_->over()) {
      std::ranges::transform(x_, g.begin(), [](float value) { return value / 2; });
      const auto step = optimizer_->step(g);
      status = step.status();
      round_ = optimizer_->round();
      // Others are to find it at any point of a step.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    words_ = status.message();
    ended_ = status.fault() != Fault::stopped && !status.ok();
  }

  ElasticOptions options_;
  std::atomic<bool> dies_{false};
  std::atomic<bool> ended_{false};
  std::string words_;  ///< of its fault, once it has ended
  std::atomic<Round> round_{0};
  std::atomic<Round> first_{0};
  std::vector<float> x_;
  std::unique_ptr<ElasticOptimizer> optimizer_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("begin again: a run that was saved and begun again has the bits of an undisturbed one") {
  const StepRuleOptions diloco{
      .rule = "sgd", .learning_rate = 0.7, .momentum = 0.9, .nesterov = true};
  for (const Case& now : {Case{}, Case{3, diloco}}) {
    CAPTURE(now.interval);
    bool compared = false;
    for (int tries = 0; tries < 20 && !compared; ++tries) {
      Interrupted run(now, 6, 11);
      const std::vector<float> reference = run.reference();
      (void)run.live(true);
      const auto order = run.order();
      const auto models = run.live(false);
      // Gradients go by places, and what a local rule remembers is a node's: let in in another
      // order, they are other nodes.
      compared = now.interval == 1 || run.order() == order;
      for (const auto& model : models) {
        CHECK((!compared || model == reference));
      }
    }
    CHECK(compared);
  }
}

TEST_CASE("begin again: a member that survives the others goes on with new ones from its step") {
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  const std::string other = "127.0.0.1:" + std::to_string(free_port());
  const auto started = [&](std::size_t k) {
    ElasticOptions options = options_for(k, seed);
    options.roster.least = 2;
    options.roster.most = 4;
    options.roster.seeds.push_back(other);  // the first seed dies
    options.listen = k == 2 ? other : options.listen;
    return std::make_unique<Node>(options);
  };
  auto eldest = started(0);
  auto second = started(1);
  auto survivor = started(2);
  while (survivor->report().epoch->members.size() < 3) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  survivor->await(survivor->round() + 2);
  // Both in no order: neither ends the epoch without the other.
  auto dies = std::async(std::launch::async, [&] { second->die(); });
  eldest->die();
  dies.get();
  const Round before = survivor->round();
  auto fourth = started(3);
  auto fifth = started(4);
  for (const Node* node : {fourth.get(), fifth.get(), survivor.get()}) {
    node->await(before + 3);
  }
  CHECK(fourth->first() > before);
  CHECK(fifth->first() > before);
}

TEST_CASE("begin again: votes without a model begin another run with the option, or say how") {
  const Scratch scratch;
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  ElasticOptions options = options_for(0, seed);
  options.roster = {.least = 1, .most = 2, .seeds = {seed}};
  options.found_after = std::chrono::milliseconds(1);
  options.begin_again_after.reset();
  options.state = scratch.path() / "state";
  options.save_every = 0;
  Node(options).await(2);
  std::vector<float> x(kDimension);
  {
    options.wait_limit = std::chrono::milliseconds(100);
    ElasticOptimizer waits(options, x);
    const Status status = waits.connect();
    CHECK(status.fault() == Fault::deadline);
    CHECK_MESSAGE(status.message().find("begin_again_after") != std::string::npos,
                  status.message());
    CHECK(status.message().find("state/votes") != std::string::npos);
  }
  options.wait_limit = std::chrono::minutes(2);
  options.begin_again_after = kAgain;
  Node again(options);
  again.await(2);
  CHECK(again.first() == 1);
}

TEST_CASE("begin again: a node alone with votes and a model goes on from it, and joins none") {
  const Scratch scratch;
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  ElasticOptions options = options_for(0, seed);
  options.roster = {.least = 1, .most = 2, .seeds = {seed}};
  options.found_after = std::chrono::milliseconds(1);
  options.state = scratch.path() / "state";
  options.save_every = 2;
  Round saved = 0;
  for (int life = 0; life < 3; ++life) {
    Node node(options);
    node.await(saved + 7);
    CHECK(node.first() == saved + 1);
    node.die();
    const auto state = read_site_state(options.state);
    REQUIRE(state.ok());
    REQUIRE(state->has_value());
    saved = (*state)->state.round;
  }
  // Another rule's memory is no model for it, and that is said.
  std::vector<float> x(kDimension);
  options.step_rule.rule = "sgd";
  CHECK_THROWS_AS(ElasticOptimizer(options, x), Error);
  options.step_rule.rule = "adam";
  for (const char* name : {"/state.a", "/state.b"}) {
    const auto perms = std::filesystem::status(options.state + name).permissions();
    CHECK(perms == (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
    std::filesystem::resize_file(options.state + name, 40);
  }
  // Damaged models are set aside, and the next good ones take their places.
  Node again(options);
  again.await(5);
  CHECK(again.first() == 1);
  again.die();
  CHECK(std::filesystem::exists(options.state + "/state.a.damaged"));
  CHECK(std::filesystem::exists(options.state + "/state.b.damaged"));
  const auto state = read_site_state(options.state);
  REQUIRE(state.ok());
  REQUIRE(state->has_value());
  CHECK((*state)->state.round >= 2);
}

namespace {

/// Nodes that are killed and started again at random, one at a time or all at once.
class Wave {
 public:
  explicit Wave(std::uint64_t seed) : draw_({.seed = seed, .purpose = Purpose::faults}) {}

  void play(int events) {
    for (std::size_t k = 0; k < kSlots; ++k) {
      start(k);
    }
    for (; events > 0; --events) {
      go_on(draw_.below(60));
      const std::uint64_t drawn = draw_.below(8);
      for (std::size_t k = 0; k < kSlots; ++k) {
        if (drawn == k || drawn == kSlots) {
          nodes_[k] ? nodes_[k].reset() : start(k);
        } else if (drawn == kSlots + 1) {
          nodes_[k].reset();
        } else if (drawn > kSlots + 1 && !nodes_[k] && draw_.below(2) == 0) {
          start(k);
        }
      }
    }
    heal();
  }

 private:
  static constexpr std::size_t kSlots = 4;

  void start(std::size_t k) {
    ElasticOptions options = options_for(k, seed_);
    options.roster.least = 2;
    options.roster.most = kSlots + 1;
    options.begin_again_after = std::chrono::milliseconds(100);
    options.timeout = std::chrono::milliseconds(1'000);
    options.save_every = 3;
    if (k < 3) {  // one keeps nothing
      options.state = scratch_.path() / options.name;
    }
    nodes_[k] = std::make_unique<Node>(options);
  }
  Round steps() const {
    Round sum = 0;
    for (const auto& node : nodes_) {
      sum += node ? node->round() : 0;
    }
    return sum;
  }
  /// Until nodes have made so many steps together, or none for a while.
  void go_on(Round more) const {
    const Round before = steps();
    for (int looks = 0; looks < 200 && steps() < before + more; ++looks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  /// All are there from now on: they come into one run, and go on.
  void heal() {
    for (int rounds = 0; rounds < 4'000; ++rounds) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::set<std::string> runs;
      bool together = true;
      for (std::size_t k = 0; k < kSlots; ++k) {
        if (nodes_[k] && nodes_[k]->ended()) {
          nodes_[k].reset();  // its run has met one with more steps
        }
        if (!nodes_[k]) {
          start(k);
        }
        const SiteReport report = nodes_[k]->report();
        together = together && report.epoch && report.epoch->members.size() == kSlots;
        runs.insert(report.epoch ? report.epoch->run : "");
      }
      if (together && runs.size() == 1) {
        for (const auto& node : nodes_) {
          node->await(node->round() + 2);
        }
        return;
      }
    }
    FAIL("the nodes do not come into one run");
  }

  RandomStream draw_;
  const Scratch scratch_;
  const std::string seed_ = "127.0.0.1:" + std::to_string(free_port());
  std::array<std::unique_ptr<Node>, kSlots> nodes_;
};

}  // namespace

TEST_CASE("begin again: whatever dies, nodes that are all there come into one run and go on") {
  const std::uint64_t seed = drawn_seed();
  CAPTURE(seed);
  Wave(seed).play(12);
}

}  // namespace sotto::test::begin_again_test

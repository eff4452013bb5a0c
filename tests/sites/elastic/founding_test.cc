// The beginning of an all-reduce whose nodes come and go, over real channels: nodes that start in
// any order, while others are at any point of theirs, are in one run.
#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/sites/elastic/elastic_hello.h>
#include <sotto/sites/elastic/elastic_optimizer.h>
#include <sotto/sites/nodes/run_roster.h>

#include "support/free_port.h"
#include "support/seed.h"

namespace sotto::test::founding_test {

namespace {

/// A node that trains until it is told to end.
class Node {
 public:
  explicit Node(ElasticOptions options)
      : x_(5),
        optimizer_(stopping(std::move(options), stop_), x_, {},
                   [this](const SiteEvent& event) {
                     other_runs_ += event.kind == SiteEvent::Kind::other_run ? 1 : 0;
                   }),
        thread_([this] { train(); }) {}
  ~Node() {
    stop_ = true;
    thread_.join();
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  SiteReport report() const { return optimizer_.report(); }
  bool ended() const { return ended_; }
  int other_runs() const { return other_runs_; }

 private:
  static ElasticOptions stopping(ElasticOptions options, const std::atomic<bool>& stop) {
    options.stop = &stop;
    return options;
  }
  void train() {
    const std::vector<float> gradient(x_.size());
    Status status = optimizer_.connect();
    while (status.ok() && !optimizer_.over()) {
      status = optimizer_.step(gradient).status();
    }
    ended_ = true;
  }

  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
  std::atomic<int> other_runs_{0};
  std::vector<float> x_;
  ElasticOptimizer optimizer_;
  std::thread thread_;
};

/// How far the latest node has come before the next one starts.
enum class Until { nothing, listens, is_up, takes_part };

bool has_come(const Node& node, Until until) {
  const SiteReport report = node.report();
  switch (until) {
    case Until::nothing:
      return true;
    case Until::listens:
      return !report.address.empty();
    case Until::is_up:
      return report.roster && report.roster->up > 0;
    case Until::takes_part:
      return report.epoch && !report.epoch->members.empty();
  }
  return false;
}

void play(std::uint64_t seed) {
  CAPTURE(seed);
  RandomStream draw({.seed = seed, .purpose = Purpose::faults});
  const std::size_t count = 3 + draw.below(3);
  const std::size_t least = 2 + draw.below(count - 1);
  std::vector<std::string> seeds;
  for (std::size_t k = 0; k < 1 + draw.below(count); ++k) {
    seeds.push_back("127.0.0.1:" + std::to_string(free_port()));
  }
  std::vector<std::size_t> order(count);
  for (std::size_t k = 0; k < count; ++k) {
    order[k] = k;
  }
  std::ranges::shuffle(order, draw);
  CAPTURE(count);
  CAPTURE(least);
  std::vector<std::unique_ptr<Node>> nodes;
  bool first_there = false;
  for (const std::size_t k : order) {
    ElasticOptions options;
    options.name = "n" + std::to_string(k);
    options.roster = {.least = least, .most = count, .seeds = seeds};
    options.listen = k < seeds.size() ? seeds[k] : "127.0.0.1:0";
    options.wait_limit = std::chrono::minutes(2);  // a test that fails ends
    nodes.push_back(std::make_unique<Node>(options));
    // Only with the first seed and MIN nodes is there a run to take part in.
    first_there = first_there || k == 0;
    const bool begins = first_there && nodes.size() >= least;
    const auto until = static_cast<Until>(draw.below(begins ? 4 : 3));
    while (!has_come(*nodes.back(), until)) {
      REQUIRE(!nodes.back()->ended());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  const auto all_in = [&] {
    std::set<std::string> runs;
    for (const auto& node : nodes) {
      const SiteReport report = node->report();
      REQUIRE(!node->ended());
      if (!report.epoch || report.epoch->members.size() != count) {
        return false;
      }
      runs.insert(report.epoch->run);
    }
    CHECK(runs.size() == 1);
    return true;
  };
  while (!all_in()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (const auto& node : nodes) {
    CHECK(node->other_runs() == 0);
  }
}

/// A process that takes part in the roster, and says on its channels that it is in a run of its
/// own.
class Elsewhere {
 public:
  explicit Elsewhere(const ElasticOptions& options, std::size_t parameters)
      : list_(std::make_shared<AllowList>(std::vector<TrustedPeer>{
            {.rank = 0,
             .name = options.name,
             .key = options.roster.key.node_keys(options.name).public_key}})),
        roster_(
            options.roster,
            {.name = options.name,
             .listen = "127.0.0.1:0",
             .incarnation = kIncarnation,
             .life = 1,
             .list = list_,
             .settings = settings_text(agreed_settings(options, complete_layout({}, parameters))),
             .reach = RosterReach::all}) {
    ChannelOptions wanted{
        .security = {.own = options.roster.key.node_keys(options.name), .peers = list_}};
    wanted.bind = roster_.address();
    wanted.max_message_bytes = wanted.max_queued_bytes = std::size_t{1} << 20U;
    auto made = make_channels(wanted);
    REQUIRE(made.ok());
    channels_ = std::move(*made);
    roster_.list_again();
    thread_ = std::thread([this] { answer(); });
  }
  ~Elsewhere() {
    stop_ = true;
    thread_.join();
  }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

  /// From now on it is in a run that has made so many steps.
  void say(Round steps) { steps_ = steps; }

 private:
  static constexpr sites::Incarnation kIncarnation = 7;
  static constexpr Round kNone = ~Round{0};

  void answer() {
    std::set<Rank> up;
    Round said = kNone;
    while (!stop_) {
      const auto event = channels_->poll(Deadline::after(std::chrono::milliseconds(5)));
      const bool fresh = event.ok() && event->kind == ChannelEvent::Kind::up;
      if (fresh) {
        up.insert(event->peer);
      }
      if (fresh || said != steps_) {
        said = steps_;
        for (const Rank peer : up) {
          const bool in_run = said != kNone;
          (void)channels_->send(
              peer, encode(ElasticHello{.incarnation = kIncarnation,
                                        .history = in_run ? sites::History{1, 1} : sites::History{},
                                        .steps = in_run ? said : 0,
                                        .member = in_run}));
        }
      }
    }
  }

  std::shared_ptr<AllowList> list_;
  RunRoster roster_;
  std::unique_ptr<Channels> channels_;
  std::atomic<bool> stop_{false};
  std::atomic<Round> steps_{kNone};
  std::thread thread_;
};

ElasticOptions first_of(const std::string& seed, std::size_t least) {
  ElasticOptions options;
  options.name = "n0";
  options.roster = {.least = least, .most = 2, .seeds = {seed}};
  options.listen = seed;
  options.found_after = std::chrono::milliseconds(1);
  options.wait_limit = std::chrono::minutes(2);  // a test that fails ends
  return options;
}

/// A node that begins a run, in which it is alone and makes no step, and a process that may be in
/// another.
struct Yielding {
  std::string seed = "127.0.0.1:" + std::to_string(free_port());
  std::vector<float> x = std::vector<float>(5);
  ElasticOptimizer node{first_of(seed, 2), x};
  Elsewhere other{named_other(first_of(seed, 2)), x.size()};

  static ElasticOptions named_other(ElasticOptions options) {
    options.name = "other";
    return options;
  }
};

}  // namespace

TEST_CASE("elastic nodes: a run that meets one with more steps ends, and says so") {
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  std::vector<float> x(5);
  ElasticOptimizer node(first_of(seed, 1), x);
  REQUIRE(node.connect().ok());
  REQUIRE(node.step(x).ok());
  ElasticOptions options = first_of(seed, 1);
  options.name = "other";
  Elsewhere other(options, x.size());
  other.say(Round{1} << 40U);
  Status status;
  while (status.ok()) {
    status = node.step(x).status();
  }
  CHECK(status.fault() == Fault::unexpected);
  CHECK_MESSAGE(status.message().find("other is in another run") != std::string::npos,
                status.message());
}

TEST_CASE("elastic nodes: a run without a step gives way to another, and its node joins that") {
  Yielding all;
  ElasticOptimizer& node = all.node;
  REQUIRE(node.connect().ok());  // a run begins, and with one member of two it makes no step
  auto step = std::async(std::launch::async, [&] { return node.step(all.x); });
  all.other.say(3);
  while (node.report().epoch->standing != "joining") {
    REQUIRE(step.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout);
  }
  node.cancel();
  const auto done = step.get();
  REQUIRE(done.ok());
  CHECK(done->left_out);
}

TEST_CASE("elastic nodes: a run is given up between two parts of a gradient") {
  Yielding all;
  ElasticOptimizer& node = all.node;
  REQUIRE(node.connect().ok());
  const std::vector<float> first(2);
  const std::vector<float> rest(3);
  REQUIRE(node.gradient_part(0, first).ok());
  all.other.say(3);
  while (node.report().epoch->standing != "joining") {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  REQUIRE(node.gradient_part(2, rest).ok());
  // With a gradient of the run that is gone the node waits to take part in the other one.
  node.cancel();
  CHECK(node.step_by_parts().status().fault() == Fault::stopped);
  // A caller that does not come back with it may give another one.
  node.cancel();
  CHECK(node.gradient_part(0, first).fault() == Fault::stopped);
  node.cancel();
  CHECK(node.step(all.x).status().fault() == Fault::stopped);
}

TEST_CASE("elastic nodes: a first seed whose run dies before it was let in begins one of its own") {
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  ElasticOptions options = first_of(seed, 2);
  options.roster.most = 4;
  ElasticOptions of_other = options;
  of_other.name = "other";
  std::vector<float> x(5);
  ElasticOptimizer node(options, x);
  auto connected = std::async(std::launch::async, [&] { return node.connect(); });
  {
    Elsewhere other(of_other, x.size());
    other.say(3);
    while (!node.report().epoch || node.report().epoch->standing != "joining" ||
           !node.report().roster || node.report().roster->up < 2) {
      REQUIRE(connected.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout);
    }
  }
  ElasticOptions of_second = options;
  of_second.name = "n1";
  of_second.listen = "127.0.0.1:0";
  const Node second(of_second);
  const Status status = connected.get();
  CHECK_MESSAGE(status.ok(), status.message());
}

TEST_CASE("elastic nodes: nodes and seeds that start in any order begin one run") {
  const std::uint64_t seed = drawn_seed();
  for (std::uint64_t k = 0; k < 4; ++k) {
    play(seed + k);
  }
}

}  // namespace sotto::test::founding_test

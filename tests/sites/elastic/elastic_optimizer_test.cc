// ElasticOptimizer over real channels on loopback: threads of this process are the nodes.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/sites/elastic/elastic_optimizer.h>
#include <sotto/sites/elastic/elastic_settings.h>
#include <sotto/sites/elastic/founding_votes.h>

#include "optim/cluster.h"
#include "support/free_port.h"
#include "support/scratch.h"

namespace sotto::test::elastic_optimizer_test {

namespace {

constexpr std::size_t kNodes = 3;
constexpr std::size_t kDimension = 37;
constexpr Round kSteps = 12;

ElasticOptions options_for(const std::string& name, const std::string& seed, std::size_t nodes) {
  ElasticOptions options;
  options.name = name;
  options.roster = {.least = nodes, .most = nodes, .seeds = {seed}};
  options.listen = name == "n0" ? seed : "";
  options.step_rule = {.rule = "adam", .learning_rate = 0.05};
  options.seed = 11;
  options.rounds = kSteps;
  options.wait_limit = std::chrono::minutes(2);  // a test that fails ends
  return options;
}

/// What became of one node.
struct Ended {
  Status status{};
  std::vector<float> x{};
  std::vector<std::string> members{};  ///< as it saw them while it took steps
};

/// A step by a gradient that comes in parts, the last elements first, as in a backward pass.
Status step_by_parts(ElasticOptimizer& node, std::span<const float> gradient) {
  for (std::size_t end = gradient.size(); end > 0;) {
    const std::size_t first = end - std::min<std::size_t>(end, 5);
    if (Status status = node.gradient_part(first, gradient.subspan(first, end - first));
        !status.ok()) {
      return status;
    }
    end = first;
  }
  return node.step_by_parts().status();
}

/// A node in a loop; `gradient` takes its place among the members. With `parts` it gives every
/// second gradient in parts.
Ended train(const ElasticOptions& options, std::vector<float> x,
            const std::function<void(const std::vector<std::string>&, Round, std::span<const float>,
                                     std::span<float>)>& gradient,
            const SiteListener& listener, bool parts = false) {
  Ended ended;
  ElasticOptimizer node(options, x, {}, listener);
  ended.status = node.connect();
  std::vector<float> g(x.size());
  while (ended.status.ok() && !node.over()) {
    if (node.report().epoch && !node.report().epoch->members.empty()) {
      ended.members = node.report().epoch->members;
    }
    gradient(ended.members, node.next_step(), x, g);
    ended.status = parts && node.round() % 2 == 0 ? step_by_parts(node, g) : node.step(g).status();
  }
  if (ended.status.ok()) {
    ended.status = node.finish();
  }
  ended.x = x;
  return ended;
}

/// What all nodes of a run compute, and whether they give gradients in parts.
struct Case {
  std::string compressor;
  Round interval = 1;
  std::optional<StepRuleOptions> outer{};
  bool parts = false;
};

/// Nodes of a fixed number that compute it.
ClusterOptions fixed_nodes(const Case& now) {
  const bool exact = now.compressor == "none";
  const StepRuleOptions as_it_is{.rule = "sgd", .learning_rate = 1};
  const bool local = now.interval > 1 || now.outer;
  return {.algorithm = exact ? "allreduce" : "qmean",
          .compressor = exact ? "" : now.compressor,
          .nodes = kNodes,
          .dimension = kDimension,
          .step = {.rule = "adam", .learning_rate = 0.05},
          .communication_interval = now.interval,
          .outer_step = local ? std::optional(now.outer.value_or(as_it_is)) : std::nullopt,
          .seed = 11,
          .allow_contract_violation = true};
}

}  // namespace

TEST_CASE(
    "elastic nodes: where nothing fails the models are those of allreduce and qmean by bits") {
  const StepRuleOptions diloco{
      .rule = "sgd", .learning_rate = 0.7, .momentum = 0.9, .nesterov = true};
  for (const Case& now : {Case{"none"}, Case{"quant:4"}, Case{"none", 3}, Case{"none", 4, diloco},
                          Case{"quant:4", 2, diloco}, Case{"none", 1, diloco},
                          Case{"none", 1, {}, true}, Case{"quant:4", 1, {}, true}}) {
    CAPTURE(now.compressor);
    CAPTURE(now.parts);
    CAPTURE(now.interval);
    const ClusterOptions fixed = fixed_nodes(now);
    const Quadratic task(kNodes, kDimension, 3, 0.2);
    const GradientFunction gradient_of = task;
    Cluster cluster(fixed);
    const std::vector<float> start = cluster.x[0];
    REQUIRE(cluster.driver.run(kSteps * now.interval, gradient_of).ok());

    const std::string seed = "127.0.0.1:" + std::to_string(free_port());
    std::vector<std::future<Ended>> nodes;
    std::mutex mutex;
    std::promise<void> bound;  // n0 has the seed's address, before another one takes it
    for (std::size_t k = 0; k < kNodes; ++k) {
      ElasticOptions options = options_for("n" + std::to_string(k), seed, kNodes);
      options.compressor = now.compressor;
      options.communication_interval = now.interval;
      options.outer_step_rule = now.outer;
      // Only the model of the node that begins counts. The order of nodes is that of their names,
      // or where one came later than the others, another: each is its place's node.
      const std::vector<float> own = k == 0 ? start : std::vector<float>(kDimension, 7);
      nodes.push_back(std::async(std::launch::async, [&, options, own] {
        return train(
            options, own,
            [&](const auto& members, Round round, auto x, auto g) {
              const auto place = std::ranges::find(members, options.name) - members.begin();
              const std::lock_guard lock(mutex);
              gradient_of(static_cast<Rank>(place), round, x, g);
            },
            [&, k](const SiteEvent& event) {
              if (k == 0 && event.kind == SiteEvent::Kind::listening) {
                bound.set_value();
              }
            },
            now.parts);
      }));
      if (k == 0) {
        REQUIRE(bound.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready);
      }
    }
    for (auto& node : nodes) {
      const Ended ended = node.get();
      REQUIRE_MESSAGE(ended.status.ok(), ended.status.message());
      CHECK(ended.members.size() == kNodes);
      CHECK(ended.x == cluster.x[0]);
    }
  }
}

TEST_CASE(
    "elastic nodes: a wait ends by its limit, by cancel() and by the stop flag, and goes on") {
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  std::vector<float> x(kDimension);
  ElasticOptions options = options_for("n0", seed, 2);
  std::atomic<bool> stop{false};
  options.stop = &stop;
  options.wait_limit = std::chrono::milliseconds(50);
  ElasticOptimizer node(options, x);
  CHECK(node.connect().fault() == Fault::deadline);  // nobody else is there
  node.cancel();
  CHECK(node.connect().fault() == Fault::stopped);
  CHECK(node.step(x).status().fault() == Fault::deadline);
  CHECK_THROWS_AS((void)node.wait(), Error);  // no gradient was taken
  stop = true;
  CHECK(node.connect().fault() == Fault::stopped);
  CHECK(node.over());
  CHECK(node.finish().ok());
  CHECK_THROWS_AS((void)node.step(x), Error);
}

TEST_CASE("elastic nodes: a node that is alone counts its steps, and ends after them") {
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  std::vector<float> x(3, 1);
  ElasticOptions options = options_for("n0", seed, 1);
  options.found_after = std::chrono::milliseconds(1);
  options.step_rule = {.rule = "sgd", .learning_rate = 0.5};
  ElasticOptimizer node(options, x);
  REQUIRE(node.connect().ok());
  CHECK_THROWS_AS((void)node.step(std::vector<float>(2)), Error);
  CHECK(node.step(std::vector<float>{0, -3e18F, 0}).status().fault() == Fault::non_finite);
  const std::vector<float> gradient(3, 1);
  for (Round round = 1; round <= kSteps; ++round) {
    CHECK(!node.over());
    const auto done = node.step(gradient);
    REQUIRE_MESSAGE(done.ok(), done.status().message());
    CHECK(*done == ElasticStep{.round = round, .left_out = false});
    CHECK(x == std::vector<float>(3, 1 - 0.5F * static_cast<float>(round)));
  }
  CHECK(node.over());
  CHECK(node.finish().ok());
}

TEST_CASE("elastic nodes: a gradient comes in parts, each element in one") {
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  std::vector<float> x(3, 1);
  ElasticOptions options = options_for("n0", seed, 1);
  options.found_after = std::chrono::milliseconds(1);
  options.step_rule = {.rule = "sgd", .learning_rate = 0.5};
  ElasticOptimizer node(options, x);
  const std::vector<float> two(2, 1);
  const std::vector<float> one(1, 1);
  CHECK_THROWS_AS((void)node.step_by_parts(), Error);  // none was given
  CHECK_THROWS_AS((void)node.gradient_part(2, two), Error);
  CHECK_THROWS_AS((void)node.gradient_part(4, {}), Error);
  for (Round round = 1; round <= kSteps; ++round) {
    CHECK(node.gradient_part(3, {}).ok());  // nothing
    REQUIRE(node.gradient_part(1, two).ok());
    CHECK(x == std::vector<float>(3, 1 - 0.5F * static_cast<float>(round - 1)));
    CHECK_THROWS_AS((void)node.gradient_part(2, one), Error);
    CHECK_THROWS_AS((void)node.step_by_parts(), Error);
    CHECK_THROWS_AS((void)node.step(std::vector<float>(3)), Error);
    const std::vector<float> spoilt(1, std::numeric_limits<float>::infinity());
    CHECK(node.gradient_part(0, spoilt).fault() == Fault::non_finite);
    const std::vector<float> huge(1, 3e18F);
    CHECK(node.gradient_part(0, huge).fault() == Fault::non_finite);
    REQUIRE(node.gradient_part(0, one).ok());
    const auto done = node.step_by_parts(0.25);
    REQUIRE_MESSAGE(done.ok(), done.status().message());
    CHECK(*done == ElasticStep{.round = round, .left_out = false});
    CHECK(x == std::vector<float>(3, 1 - 0.5F * static_cast<float>(round)));
  }
  CHECK(node.finish().ok());
  CHECK_THROWS_AS((void)node.gradient_part(0, one), Error);

  options.communication_interval = 2;
  ElasticOptimizer local(options, x);
  CHECK_THROWS_AS((void)local.gradient_part(0, one), Error);
}

TEST_CASE("elastic nodes: a listener that throws ends the node, which nobody then waits for") {
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  std::vector<float> x(3);
  ElasticOptions options = options_for("n0", seed, 1);
  int told = 0;
  ElasticOptimizer node(options, x, {}, [&](const SiteEvent&) {
    ++told;
    throw std::runtime_error("the disk is full");
  });
  CHECK_THROWS_AS((void)node.connect(), std::runtime_error);
  CHECK(node.connect().fault() == Fault::unexpected);
  CHECK(node.report().phase == SitePhase::failed);
  CHECK(told > 0);
}

TEST_CASE("elastic nodes: settings are refused before anything is sent") {
  std::vector<float> x(kDimension);
  const auto refused = [&](const auto& change) {
    ElasticOptions options = options_for("n0", "127.0.0.1:1", 2);
    change(options);
    CHECK_THROWS_AS(ElasticOptimizer(options, x), Error);
  };
  refused([](ElasticOptions& o) { o.name = ""; });
  refused([](ElasticOptions& o) { o.roster.most = 65; });
  refused([](ElasticOptions& o) { o.compressor = "nothing"; });
  refused([](ElasticOptions& o) { o.compressor = "quant:4; 1d=none"; });  // goes by the tensors
  refused([](ElasticOptions& o) { o.step_rule.rule = "nothing"; });
  refused([](ElasticOptions& o) { o.communication_interval = 0; });
  refused([](ElasticOptions& o) { o.outer_step_rule = {.rule = "nothing"}; });
}

TEST_CASE("elastic nodes: votes are kept in a folder, for the node that cast them alone") {
  const Scratch scratch;
  const std::string folder = scratch.path() / "state";
  const std::vector<std::byte> votes = {std::byte{1}, std::byte{2}};
  {
    const FoundingVotes none(folder, "a");
    CHECK(none.found().empty());
    CHECK(none.keep(votes).ok());
    CHECK_THROWS_AS(FoundingVotes(folder, "a"), Error);  // it is held
  }
  CHECK(FoundingVotes(folder, "a").found() == votes);
  CHECK_THROWS_AS(FoundingVotes(folder, "b"), Error);
  CHECK(FoundingVotes("", "a").keep(votes).ok());
  CHECK(FoundingVotes(folder, "a").note({.steps = 9, .all_left = true}).ok());
  CHECK(FoundingVotes(folder, "a").end().has_value());
  // A node whose votes are removed to begin another run has not ended that one.
  std::filesystem::remove(folder + "/votes");
  CHECK(FoundingVotes(folder, "a").keep(votes).ok());
  CHECK_FALSE(FoundingVotes(folder, "a").end().has_value());
  std::ofstream(folder + "/votes", std::ios::binary) << "damaged";
  CHECK_THROWS_AS(FoundingVotes(folder, "a"), Error);
}

TEST_CASE("elastic nodes: a node without a name of its own takes that of the votes in its folder") {
  const Scratch scratch;
  ElasticSettings settings;
  settings.training.algorithm = "allreduce";
  settings.roster.nodes = "1:2";
  settings.roster.seeds = "127.0.0.1:9";
  settings.state = scratch.path() / "state";
  const std::string drawn = options_of(settings).name;
  CHECK(options_of(settings).name != drawn);  // there are no votes yet
  CHECK(FoundingVotes(settings.state, drawn).keep(std::vector<std::byte>(3)).ok());
  CHECK(options_of(settings).name == drawn);
  CHECK_NOTHROW(FoundingVotes(settings.state, options_of(settings).name));
  settings.roster.name = "another";
  CHECK(options_of(settings).name == "another");
}

TEST_CASE("elastic nodes: a node with another key says that it may be the key, on both sides") {
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  const auto with_own_key = [&](const std::string& name) {
    ElasticOptions options = options_for(name, seed, 2);
    options.roster.key = RunKey(make_key_pair());
    return options;
  };
  std::vector<float> x(kDimension);
  std::vector<float> y(kDimension);
  std::atomic<bool> known{false};
  ElasticOptions first = with_own_key("n0");
  first.stop = &known;
  ElasticOptimizer asked(first, x);
  auto waits = std::async(std::launch::async, [&] { return asked.connect(); });
  while (asked.report().address.empty()) {
    std::this_thread::yield();
  }
  ElasticOptions second = with_own_key("n1");
  second.stop = &known;
  ElasticOptimizer stranger(second, y);
  auto strays = std::async(std::launch::async, [&] { return stranger.connect(); });
  while (asked.report().epoch->waits_for != "key" || stranger.report().address.empty()) {
    REQUIRE(waits.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
    std::this_thread::yield();
  }
  CHECK(stranger.report().epoch->waits_for == "nobody");
  known = true;
  CHECK(waits.get().fault() == Fault::stopped);
  CHECK(strays.get().fault() == Fault::stopped);
}

TEST_CASE("elastic nodes: a run that stands still says so, and that it goes on") {
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  std::atomic<int> steps{0};
  std::atomic<bool> listens{false};
  std::atomic<bool> waits{false};
  std::atomic<bool> goes_on{false};
  std::atomic<bool> stop{false};
  const SiteListener listener = [&](const SiteEvent& event) {
    listens = listens || event.kind == SiteEvent::Kind::listening;
    waits = waits || event.kind == SiteEvent::Kind::run_waits;
    goes_on = goes_on || event.kind == SiteEvent::Kind::run_goes_on;
  };
  const auto start = [&](const std::string& name, std::atomic<bool>* stopped) {
    ElasticOptions options = options_for(name, seed, 2);
    options.rounds = 0;
    options.stop = stopped;
    return std::async(std::launch::async, [&, options, name] {
      return train(
          options, std::vector<float>(kDimension),
          [&](const auto&, Round, auto x, auto g) {
            std::copy(x.begin(), x.end(), g.begin());
            ++steps;
          },
          name == "n0" ? listener : SiteListener());
    });
  };
  const auto await = [&](const std::future<Ended>& node, const auto& done) {
    while (!done()) {
      REQUIRE(node.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout);
    }
  };
  std::atomic<bool> gone{false};
  auto first = start("n0", &stop);
  await(first, [&] { return listens.load(); });  // before another one takes its address
  auto second = start("n1", &gone);
  await(first, [&] { return steps > 0; });
  gone = true;
  CHECK(second.get().status.fault() != Fault::unexpected);
  await(first, [&] { return waits.load(); });  // it is alone, and two are needed
  CHECK(!goes_on);
  auto third = start("n2", &stop);
  await(first, [&] { return goes_on.load(); });
  stop = true;
  CHECK(third.get().status.fault() != Fault::unexpected);
  CHECK(first.get().status.fault() != Fault::unexpected);
}

TEST_CASE("elastic nodes: a founder that comes back to a run that is over says so") {
  const Scratch scratch;
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  ElasticOptions options = options_for("n0", seed, 1);
  options.found_after = std::chrono::milliseconds(1);
  options.state = scratch.path() / "state";
  const auto at_rest = [](const auto&, Round, auto, auto g) { std::ranges::fill(g, 0.F); };
  REQUIRE(train(options, std::vector<float>(3), at_rest, {}).status.ok());
  for (const Round rounds : {kSteps, 3 * kSteps}) {  // all have left: no number of steps helps
    options.rounds = rounds;
    CHECK(train(options, std::vector<float>(3), at_rest, {}).status.fault() == Fault::ended);
  }
  options.state = scratch.path() / "another";
  CHECK(train(options, std::vector<float>(3), at_rest, {}).status.ok());
}

TEST_CASE("elastic nodes: a stop, haste and cancel() cut short what a node waits for to leave") {
  enum class Cut { by_stop, by_haste, by_cancel, by_cancel_before };
  for (const Cut cut : {Cut::by_stop, Cut::by_haste, Cut::by_cancel, Cut::by_cancel_before}) {
    CAPTURE(static_cast<int>(cut));
    const std::string seed = "127.0.0.1:" + std::to_string(free_port());
    std::vector<float> x(kDimension);
    std::vector<float> y(kDimension);
    const ElasticOptions eldest = options_for("n0", seed, 2);
    auto elder = std::make_unique<ElasticOptimizer>(eldest, x);
    auto waits = std::async(std::launch::async, [&] { return elder->connect(); });
    while (elder->report().address.empty()) {
      REQUIRE(waits.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout);
    }
    std::atomic<bool> stop{false};
    std::atomic<bool> haste{false};
    std::atomic<int> told{0};
    ElasticOptions youngest = options_for("n1", seed, 2);
    youngest.stop = &stop;
    youngest.haste = &haste;
    youngest.roster.leave_patience = std::chrono::minutes(30);
    ElasticOptimizer younger(youngest, y, {}, [&told](const SiteEvent& event) {
      told += event.kind == SiteEvent::Kind::undelivered ? 1 : 0;
    });
    REQUIRE(younger.connect().ok());
    REQUIRE(waits.get().ok());
    elder.reset();  // of two the younger can neither go on nor end the epoch
    if (cut == Cut::by_cancel_before) {
      younger.cancel();  // ends the next wait where there is none yet
      CHECK(younger.finish().ok());
      continue;
    }
    stop = cut == Cut::by_haste;  // a stop from before does not cut it
    auto leaves = std::async(std::launch::async, [&] { return younger.finish(); });
    while (younger.report().epoch->waits_for != "quorum") {
      REQUIRE(leaves.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout);
    }
    CHECK(told == 0);
    if (cut == Cut::by_cancel) {
      younger.cancel();
    } else {
      (cut == Cut::by_stop ? stop : haste) = true;
    }
    CHECK(leaves.get().ok());
    CHECK(told == 1);
  }
}

TEST_CASE("elastic nodes: a listener that throws what is no std::exception ends its node alone") {
  const std::string seed = "127.0.0.1:" + std::to_string(free_port());
  std::vector<float> x(3);
  ElasticOptions options = options_for("n0", seed, 1);
  options.found_after = std::chrono::milliseconds(1);
  options.roster.most = 2;
  std::atomic<bool> throws{false};
  ElasticOptimizer node(options, x, {}, [&](const SiteEvent&) {
    if (throws) {
      throw 42;  // NOLINT(hicpp-exception-baseclass): it is what is tested
    }
  });
  REQUIRE(node.connect().ok());
  throws = true;
  std::vector<float> y(3);
  ElasticOptions other = options_for("n1", seed, 1);
  other.roster.most = 2;
  ElasticOptimizer newcomer(other, y);
  auto comes = std::async(std::launch::async, [&] { return newcomer.connect(); });
  // The node's own thread tells that another one has come.
  while (node.report().phase != SitePhase::failed) {
    std::this_thread::yield();
  }
  CHECK(node.step(x).status().fault() == Fault::unexpected);
  newcomer.cancel();
  (void)comes.get();
}

}  // namespace sotto::test::elastic_optimizer_test

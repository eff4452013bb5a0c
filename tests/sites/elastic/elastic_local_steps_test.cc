// Steps of a node's own between those of a run whose nodes come and go.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/sites/elastic/elastic_optimizer.h>

#include "support/free_port.h"

namespace sotto::test::elastic_local_steps_test {

namespace {

constexpr Round kRounds = 6;

ElasticOptions options_for(const std::string& name, const std::string& seed, std::size_t least,
                           std::size_t most) {
  ElasticOptions options;
  options.name = name;
  options.roster = {.least = least, .most = most, .seeds = {seed}};
  options.listen = name == "n0" ? seed : "";
  options.step_rule = {.rule = "sgd", .learning_rate = 0.5};
  options.communication_interval = 3;
  options.rounds = kRounds;
  options.found_after = std::chrono::milliseconds(1);
  options.wait_limit = std::chrono::minutes(2);  // a test that fails ends
  return options;
}

/// Rounds that a node has come to, for others to wait for.
class Progress {
 public:
  void reach(Round round) {
    const std::lock_guard lock(mutex_);
    round_ = std::max(round_, round);
    change_.notify_all();
  }
  bool wait_for(Round round) {
    std::unique_lock lock(mutex_);
    return change_.wait_for(lock, std::chrono::minutes(2), [&] { return round_ >= round; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  Round round_ = 0;
};

}  // namespace

TEST_CASE("elastic nodes: local steps are a node's own, and the run's step takes their movement") {
  const std::string seed = "127.0.0.1:" + std::to_string(test::free_port());
  std::vector<float> x(3, 1);
  ElasticOptions options = options_for("n0", seed, 1, 1);
  options.outer_step_rule = {.rule = "sgd", .learning_rate = 0.5};
  ElasticOptimizer node(options, x);
  REQUIRE(node.connect().ok());
  const std::vector<float> gradient(3, 1);
  float run = 1;
  for (Round round = 0; round < kRounds; ++round) {
    for (Round step = 0; step < 3; ++step) {
      CHECK(node.next_step() == 3 * round + step);
      CHECK_FALSE(node.over());
      if (step == 1) {
        std::vector<float> damaged(gradient);
        damaged[1] = std::numeric_limits<float>::quiet_NaN();
        CHECK(node.step(damaged).status().fault() == Fault::non_finite);
        CHECK(node.next_step() == 3 * round + step);
      }
      const auto done = node.step(gradient);
      REQUIRE_MESSAGE(done.ok(), done.status().message());
      CHECK(*done == ElasticStep{.round = round + (step == 2 ? 1 : 0), .local = step < 2});
      CHECK(x[0] == (step < 2 ? run - 0.5F * static_cast<float>(step + 1) : run - 0.75F));
    }
    run -= 0.75F;  // half of what three steps of 0.5 come to
  }
  CHECK(node.over());
  CHECK(node.finish().ok());
}

TEST_CASE("elastic nodes: a node that ends between two steps of the run leaves the run's model") {
  const std::string seed = "127.0.0.1:" + std::to_string(test::free_port());
  std::vector<float> x(3, 1);
  std::atomic<bool> stop{false};
  ElasticOptions options = options_for("n0", seed, 1, 1);
  options.stop = &stop;
  ElasticOptimizer node(options, x);
  const std::vector<float> gradient(3, 1);
  for (int step = 0; step < 4; ++step) {
    REQUIRE(node.step(gradient).ok());
  }
  CHECK(x[0] == -1);
  stop = true;
  CHECK(node.over());
  CHECK(node.finish().ok());
  CHECK(x == std::vector<float>(3, -0.5F));
}

TEST_CASE("elastic nodes: an update that overflows in a local step ends the node") {
  const std::string seed = "127.0.0.1:" + std::to_string(test::free_port());
  std::vector<float> x(3, 1);
  ElasticOptions options = options_for("n0", seed, 1, 1);
  options.step_rule.learning_rate = 1e30;
  ElasticOptimizer node(options, x);
  REQUIRE(node.connect().ok());
  CHECK(node.step(std::vector<float>(3, 1e30F)).status().fault() == Fault::non_finite);
  CHECK(node.step(std::vector<float>(3, 1)).status().fault() == Fault::non_finite);
  CHECK(node.report().phase == SitePhase::failed);
}

TEST_CASE(
    "elastic nodes: models are equal after each step of the run when a node dies in its own") {
  const std::string seed = "127.0.0.1:" + std::to_string(test::free_port());
  std::promise<void> bound;  // n0 has the seed's address, before another one takes it
  std::vector<std::vector<float>> ends(3);  // the last one may find the run over
  const auto train = [&](std::size_t place) {
    const std::string name = "n" + std::to_string(place);
    std::vector<float> x(5, static_cast<float>(place));
    ElasticOptimizer node(options_for(name, seed, 2, 3), x, {}, [&, place](const SiteEvent& event) {
      if (place == 0 && event.kind == SiteEvent::Kind::listening) {
        bound.set_value();
      }
    });
    Status status = node.connect();
    while (status.ok() && !node.over()) {
      std::vector<float> gradient(x);
      for (float& g : gradient) {
        g -= static_cast<float>(place);
      }
      const auto step = node.step(gradient);
      status = step.status();
      if (place == 2 && step.ok() && step->round > 0 && step->local) {
        return Status();  // as a process that dies
      }
    }
    if (status.ok()) {
      status = node.finish();
      ends[place] = x;
    }
    return status;
  };
  std::vector<std::future<Status>> nodes;
  nodes.push_back(std::async(std::launch::async, train, 0));
  REQUIRE(bound.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready);
  nodes.push_back(std::async(std::launch::async, train, 1));
  nodes.push_back(std::async(std::launch::async, train, 2));
  for (auto& node : nodes) {
    const Status status = node.get();
    CHECK_MESSAGE(status.ok(), status.message());
  }
  CHECK(ends[0] == ends[1]);
}

TEST_CASE(
    "elastic nodes: a node that the run has not waited for learns it in its next local step") {
  const std::string seed = "127.0.0.1:" + std::to_string(test::free_port());
  std::promise<void> bound;
  Progress all;    // local steps that the slow node has made
  Progress ahead;  // steps of the run that n0 has made
  const auto with_grace = [&](const std::string& name) {
    ElasticOptions options = options_for(name, seed, 2, 3);
    options.grace = std::chrono::milliseconds(1);
    options.communication_interval = 10;
    options.rounds = 3;
    return options;
  };
  const auto fast = [&](const std::string& name) {
    std::vector<float> x(4);
    const ElasticOptions options = with_grace(name);
    ElasticOptimizer node(options, x, {}, [&, name](const SiteEvent& event) {
      if (name == "n0" && event.kind == SiteEvent::Kind::listening) {
        bound.set_value();
      }
    });
    Status status = node.connect();
    const std::vector<float> gradient(4, 1);
    while (status.ok() && !node.over() && all.wait_for(1)) {
      status = node.step(gradient).status();
      ahead.reach(name == "n0" ? node.round() : 0);
    }
    return status.ok() ? node.finish() : status;
  };
  std::vector<std::future<Status>> nodes;
  nodes.push_back(std::async(std::launch::async, fast, "n0"));
  REQUIRE(bound.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready);
  nodes.push_back(std::async(std::launch::async, fast, "n1"));

  std::vector<float> x(4);
  ElasticOptimizer slow(with_grace("n2"), x);
  REQUIRE(slow.connect().ok());
  const std::vector<float> gradient(4, 1);
  const auto first = slow.step(gradient);
  REQUIRE(first.ok());
  CHECK(*first == ElasticStep{.round = 0, .local = true});
  all.reach(1);
  // The others make their second step once this one has said that it has the first.
  REQUIRE(ahead.wait_for(2));
  const auto second = slow.step(gradient);
  REQUIRE_MESSAGE(second.ok(), second.status().message());
  CHECK(second->left_out);
  CHECK(second->round >= 1);
  Status status = slow.finish();
  CHECK_MESSAGE(status.ok(), status.message());
  for (auto& node : nodes) {
    status = node.get();
    CHECK_MESSAGE(status.ok(), status.message());
  }
}

TEST_CASE("elastic nodes: nodes must agree on local steps and the outer rule") {
  const auto text = [](const auto& change) {
    ElasticOptions options;
    options.roster.seeds = {"127.0.0.1:9"};
    change(options);
    return settings_text(agreed_settings(options, {{"x", {3}}}));
  };
  const std::string usual = text([](ElasticOptions&) {});
  CHECK(text([](ElasticOptions& o) { o.communication_interval = 2; }) != usual);
  const std::string outer = text([](ElasticOptions& o) { o.outer_step_rule = StepRuleOptions{}; });
  CHECK(outer != usual);
  CHECK(text([](ElasticOptions& o) { o.outer_step_rule = {.rule = "sgd", .momentum = 0.5}; }) !=
        outer);
}

TEST_CASE("elastic nodes: DiLoCo as the page has it can be built") {
  std::vector<float> x(3);
  ElasticOptions options = options_for("n0", "127.0.0.1:9", 1, 2);
  options.communication_interval = 100;  // of the node's own steps for one of the run
  options.outer_step_rule = sotto::StepRuleOptions{
      .rule = "sgd", .learning_rate = 0.7, .momentum = 0.9, .nesterov = true};
  options.rounds = 50;  // steps of the run: 5,000 gradients; 0: on and on
  CHECK_NOTHROW(ElasticOptimizer(options, x));
}

TEST_CASE("elastic nodes: parameters that are set before connect() are the initial model") {
  const std::string seed = "127.0.0.1:" + std::to_string(test::free_port());
  std::vector<float> x(3);
  ElasticOptimizer node(options_for("n0", seed, 1, 1), x);
  x = {1, 2, 3};
  REQUIRE(node.connect().ok());
  CHECK(x == std::vector<float>{1, 2, 3});
}

TEST_CASE(
    "elastic nodes: a wait for the run's step that ends early goes on with the same movement") {
  const std::string seed = "127.0.0.1:" + std::to_string(test::free_port());
  std::promise<void> bound;
  std::promise<void> waited;  // n0 has given up waiting for n1's movement, once
  std::vector<float> x(3, 1);
  std::vector<float> y(3, 1);
  const auto first = [&] {
    ElasticOptions options = options_for("n0", seed, 2, 2);
    ElasticOptimizer node(options, x, {}, [&](const SiteEvent& event) {
      if (event.kind == SiteEvent::Kind::listening) {
        bound.set_value();
      }
    });
    Status status = node.connect();
    const std::vector<float> gradient(3, 1);
    for (int step = 0; status.ok() && step < 2; ++step) {
      status = node.step(gradient).status();
    }
    node.cancel();
    CHECK(node.step(gradient).status().fault() == Fault::stopped);
    CHECK_THROWS_AS((void)node.step(gradient), Error);
    waited.set_value();
    auto made = node.wait();
    CHECK(made.ok());
    CHECK((made.ok() && *made == ElasticStep{.round = 1}));
    CHECK(x == std::vector<float>(3, -0.5F));
    return made.status();  // and dies
  };
  const auto second = [&] {
    ElasticOptimizer node(options_for("n1", seed, 2, 2), y);
    Status status = node.connect();
    const std::vector<float> gradient(3, 1);
    for (int step = 0; status.ok() && step < 3; ++step) {
      if (step == 2) {
        waited.get_future().wait();
      }
      status = node.step(gradient).status();
    }
    CHECK(y == std::vector<float>(3, -0.5F));
    return status;
  };
  auto one = std::async(std::launch::async, first);
  REQUIRE(bound.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready);
  auto other = std::async(std::launch::async, second);
  const Status last = other.get();
  CHECK_MESSAGE((last.ok() || last.fault() == Fault::deadline), last.message());
  CHECK(one.get().ok());
}

}  // namespace sotto::test::elastic_local_steps_test

// Where the warning of parameters without a variance arrives: in the optimizer of each node, and
// once with the observer of a loop of the caller's own and of a whole run.
#include <sotto/trainers/optimizer.h>

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/trainers/run.h>
#include <sotto/trainers/tasks/quadratic.h>

#include "trainers/nodes.h"

namespace sotto::test::freeze_notice_test {

namespace {

constexpr int kNodes = 3;
constexpr std::size_t kDimension = 8;
constexpr Round kRounds = 12;

/// Keeps the warnings, and how many rounds were done then.
class Listener final : public Observer {
 public:
  void round_done(Round done) override { rounds_ = done; }
  void warning(const std::string& text) override {
    heard.push_back(text);
    after.push_back(rounds_);
  }

  std::vector<std::string> heard;
  std::vector<Round> after;

 private:
  Round rounds_ = 0;
};

bool tells(const std::vector<std::string>& warnings) {
  return warnings.size() == 1 &&
         warnings[0].starts_with(
             "3 of 8 parameters had no gradient before Adam's variance was "
             "frozen (freeze_step 2)") &&
         warnings[0].find("x (3 of 8)") != std::string::npos;
}

void pull(Rank rank, Round round, std::span<const float> x, std::span<float> gradient) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    gradient[k] = k < 3 && round < 6 ? 0.0F : x[k] - 1 - static_cast<float>(rank);
  }
}

/// All nodes start where the first three parameters want to be.
TaskOfNode tasks() {
  auto problem = std::make_shared<QuadraticProblem>();
  problem->start.assign(kDimension, 1.0F);
  for (int i = 0; i < kNodes; ++i) {
    QuadraticProblem::Node node;
    for (std::size_t k = 0; k < kDimension; ++k) {
      node.h.push_back(1);
      node.c.push_back(k < 3 ? 1 : 2 + i);
    }
    problem->nodes.push_back(std::move(node));
  }
  return [shared = std::shared_ptr<const QuadraticProblem>(problem)](Rank rank) {
    return std::make_unique<QuadraticTask>(shared, rank);
  };
}

}  // namespace

TEST_CASE("in a loop of one's own each node's optimizer warns, and the observer hears it once") {
  for (const AlgorithmInfo& info : algorithms()) {
    if (!info.has("freeze")) {
      continue;
    }
    for (const bool overlap : {true, false}) {
      CAPTURE(std::string(info.name));
      CAPTURE(overlap);
      Listener listener;
      auto options = options_for(kNodes, make_memory_store());
      choose(options, info);
      options.overlap = overlap;
      options.observer = &listener;
      options.report_every = kRounds;
      std::vector<std::vector<std::string>> warnings(kNodes);
      const auto statuses = play(kNodes, [&](Rank rank) -> Status {
        OptimizerOptions mine = options;
        mine.rank = rank;
        std::vector<float> x(kDimension);
        std::vector<float> gradient(kDimension);
        Optimizer optimizer(mine, x);
        while (optimizer.round() < kRounds) {
          if (Status status = optimizer.begin_step(); !status.ok()) {
            return status;
          }
          pull(rank, optimizer.round(), optimizer.parameters(), gradient);
          if (Status status = optimizer.step(gradient); !status.ok()) {
            return status;
          }
        }
        warnings[static_cast<std::size_t>(rank)] = optimizer.warnings();
        return optimizer.finish();
      });
      for (std::size_t node = 0; node < statuses.size(); ++node) {
        CAPTURE(statuses[node].message());
        CHECK(statuses[node].ok());
        CHECK(tells(warnings[node]));
      }
      CHECK(tells(listener.heard));
    }
  }
}

TEST_CASE("a whole run tells its observer when the variance freezes") {
  for (const AlgorithmInfo& info : algorithms()) {
    if (!info.has("freeze")) {
      continue;
    }
    CAPTURE(std::string(info.name));
    Listener listener;
    RunOptions options;
    options.optimizer = options_for(kNodes, nullptr);
    choose(options.optimizer, info);
    options.rounds = kRounds;
    const auto result = run_threads(options, tasks(), {.observer = &listener});
    CAPTURE(result.status().message());
    REQUIRE(result.ok());
    CHECK(tells(listener.heard));
    const Round agreement = info.name == "onebit-adam-gossip" ? 2 : 0;
    CHECK(listener.after == std::vector<Round>{*ClusterOptions().freeze_step + agreement - 1});
  }
}

}  // namespace sotto::test::freeze_notice_test

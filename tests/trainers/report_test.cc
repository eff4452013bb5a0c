// What an optimizer in a loop of the caller's own tells whoever watches it.
#include <sotto/trainers/optimizer.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/trainers/result.h>

#include "comm/nodes.h"
#include "support/free_port.h"
#include "support/skip.h"
#include "trainers/nodes.h"
#include "trainers/watcher.h"

namespace sotto::test::report_test {

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kDimension = 300;
constexpr Round kRounds = 20;

void pull(Rank rank, Round /*round*/, std::span<const float> x, std::span<float> gradient) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    gradient[k] = x[k] - static_cast<float>(rank) - 0.01F * static_cast<float>(k);
  }
}

OptimizerOptions watched(Observer* observer, const char* algorithm = "dcd") {
  auto options = options_for(kNodes, make_memory_store());
  options.algorithm = algorithm;
  options.compressor = "quant:4";
  options.observer = observer;
  options.report_every = 5;
  return options;
}

using Models = std::vector<std::vector<float>>;

Models trained(const OptimizerOptions& options) {
  Models x(kNodes, std::vector<float>(kDimension));
  const auto statuses = play(kNodes, [&](Rank rank) {
    return train(options, rank, kRounds, pull, x[static_cast<std::size_t>(rank)]);
  });
  for (const Status& status : statuses) {
    CAPTURE(status.message());
    CHECK(status.ok());
  }
  return x;
}

}  // namespace

TEST_CASE("who watches a loop of the caller's own changes nothing of it, and hears of all nodes") {
  for (const char* algorithm : {"dcd", "choco", "pushsum", "dpsgd"}) {
    CAPTURE(algorithm);
    Watcher watcher;
    watcher.phases = watcher.health = true;
    auto options = watched(&watcher, algorithm);
    options.compressor = std::string(algorithm) == "dpsgd" ? "none" : "quant:4";
    const Models with = trained(options);
    options.observer = nullptr;
    options.store = make_memory_store();
    CHECK(with == trained(options));

    REQUIRE(watcher.starts.size() == 1);
    CHECK(watcher.starts[0].nodes == kNodes);
    CHECK(watcher.starts[0].dimension == kDimension);
    CHECK(watcher.starts[0].rounds == 0);
    CHECK(watcher.rounds == kRounds);
    CHECK(watcher.nodes_ended.size() == kNodes);
    REQUIRE(watcher.ends.size() == 1);
    CHECK(watcher.ends[0].ok());
    REQUIRE(watcher.evaluations.size() == kRounds / 5 + 1);  // and one in the end

    const RunEvaluation& last = watcher.evaluations.back();
    CHECK(last.point.round == kRounds);
    CHECK(std::isnan(last.point.loss));
    CHECK(std::isnan(last.point.consensus_distance));
    REQUIRE(last.nodes.size() == kNodes);
    double bytes = 0;
    for (Rank rank = 0; rank < kNodes; ++rank) {
      const NodeStanding& node = last.nodes[static_cast<std::size_t>(rank)];
      CHECK(node.node == rank);
      CHECK(node.compute_s > 0);
      CHECK(node.wall_s >= node.compute_s);
      for (const LinkTraffic& link : node.traffic) {
        CHECK(link.from == rank);
        CHECK(link.frames == kRounds);
        bytes += static_cast<double>(link.bytes);
      }
    }
    CHECK(last.point.bytes_per_node == doctest::Approx(bytes / kNodes));
    CHECK(last.allreduce_bytes == doctest::Approx(2 * 0.75 * 4.0 * kDimension * kRounds));
    if (std::string(algorithm) == "dcd") {
      REQUIRE(last.compression);
      CHECK(last.compression->error > 0);
      CHECK(last.compression->error <= 2 * last.compression->bound);
    }
  }
}

TEST_CASE("a loop of the caller's own has a round and a gradient for each step") {
  for (const bool begins : {false, true}) {
    CAPTURE(begins);
    Watcher watcher;
    watcher.phases = true;
    auto options = watched(&watcher);
    std::vector<std::vector<float>> x(kNodes, std::vector<float>(kDimension));
    const auto statuses = play(kNodes, [&](Rank rank) {
      auto mine = options;
      mine.rank = rank;
      auto& model = x[static_cast<std::size_t>(rank)];
      Optimizer optimizer(mine, model);
      std::vector<float> gradient(kDimension);
      for (Round round = 0; round < kRounds; ++round) {
        if (begins) {
          if (Status status = optimizer.begin_step(); !status.ok()) {
            return status;
          }
        }
        pull(rank, round, model, gradient);
        if (Status status = optimizer.step(gradient); !status.ok()) {
          return status;
        }
      }
      return optimizer.finish();
    });
    for (const Status& status : statuses) {
      CHECK(status.ok());
    }
    std::map<std::pair<Rank, RunPhase>, std::vector<PhaseSpan>> spans;
    for (const PhaseSpan& span : watcher.spans) {
      spans[{span.node, span.phase}].push_back(span);
    }
    for (Rank rank = 0; rank < kNodes; ++rank) {
      const auto& rounds = spans[{rank, RunPhase::round}];
      const auto& gradients = spans[{rank, RunPhase::gradient}];
      REQUIRE(rounds.size() == kRounds);
      REQUIRE(gradients.size() == kRounds);
      for (std::size_t k = 0; k < kRounds; ++k) {
        CHECK(rounds[k].round == k);
        CHECK(rounds[k].from <= gradients[k].from);
        CHECK(gradients[k].until <= rounds[k].until);
        CHECK((k == 0 || rounds[k - 1].until <= rounds[k].from));
      }
    }
  }
}

TEST_CASE("what the caller has found of its model is reported at once, by node 0 alone") {
  Watcher watcher;
  watcher.health = true;
  auto options = watched(&watcher);
  options.report_every = 1000;
  Models x(kNodes, std::vector<float>(kDimension));
  const auto statuses = play(kNodes, [&](Rank rank) {
    auto mine = options;
    mine.rank = rank;
    auto& model = x[static_cast<std::size_t>(rank)];
    Optimizer optimizer(mine, model);
    if (Status status = optimizer.evaluated(4.5 + rank); !status.ok()) {
      return status;
    }
    std::vector<float> gradient(kDimension, 0.5F);
    for (int k = 0; k < 3; ++k) {
      if (Status status = optimizer.step(gradient); !status.ok()) {
        return status;
      }
    }
    if (Status status = optimizer.evaluated(2.5 + rank, 0.75); !status.ok()) {
      return status;
    }
    return optimizer.finish();
  });
  for (const Status& status : statuses) {
    CAPTURE(status.message());
    CHECK(status.ok());
  }
  REQUIRE(watcher.evaluations.size() == 3);
  CHECK(watcher.evaluations[0].point.loss == 4.5);
  CHECK(watcher.evaluations[0].point.round == 0);
  CHECK(watcher.evaluations[1].point.loss == 2.5);
  CHECK(watcher.evaluations[1].point.accuracy == 0.75);
  CHECK(watcher.evaluations[1].point.round == 3);
  CHECK(watcher.evaluations[1].nodes.front().node == 0);
  CHECK(watcher.evaluations[2].nodes.size() == kNodes);
}

TEST_CASE("the end of a loop is told with what ended it") {
  const auto ended = [](const std::function<void(Optimizer&)>& loop) {
    Watcher watcher;
    {
      auto options = options_for(1, make_memory_store());
      options.observer = &watcher;
      std::vector<float> x(3);
      Optimizer optimizer(options, x);
      loop(optimizer);
    }
    CHECK(watcher.ends.size() == watcher.starts.size());
    return watcher.ends;
  };
  const std::vector<float> gradient(3, 1.0F);
  const std::vector<float> wild(3, std::numeric_limits<float>::infinity());
  CHECK(ended([](Optimizer&) {}).empty());
  const auto left = ended([&](Optimizer& optimizer) { CHECK(optimizer.step(gradient).ok()); });
  CHECK(left.at(0).message().find("left before the end") != std::string::npos);
  const auto fault = ended([&](Optimizer& optimizer) {
    CHECK(optimizer.step(gradient).ok());
    CHECK_FALSE(optimizer.step(wild).ok());
  });
  CHECK(fault.at(0).fault() == Fault::non_finite);
  const auto whole = ended([&](Optimizer& optimizer) {
    CHECK(optimizer.step(gradient).ok());
    CHECK_FALSE(optimizer.step(wild).ok());
    CHECK(optimizer.step(gradient).ok());
    CHECK(optimizer.finish().ok());
  });
  CHECK(whole.at(0).ok());
}

TEST_CASE("an observer that cannot begin ends the run with its own words") {
  Watcher watcher;
  watcher.on_begin = [] { throw std::runtime_error("the port is taken"); };
  auto options = options_for(1, make_memory_store());
  options.observer = &watcher;
  std::vector<float> x(3);
  Optimizer optimizer(options, x);
  const Status status = optimizer.step(std::vector<float>(3, 1.0F));
  CHECK(status.fault() == Fault::io);
  CHECK(status.message() == "node 0: the port is taken");
  CHECK(optimizer.step(std::vector<float>(3, 1.0F)).fault() == Fault::io);
}

TEST_CASE("the mean of all models is every node's, and its distance is reported with the loss") {
  for (const char* algorithm : {"dcd", "choco", "adpsgd"}) {
    CAPTURE(algorithm);
    Watcher watcher;
    auto options = watched(&watcher, algorithm);
    options.compressor = std::string(algorithm) == "adpsgd" ? "none" : "quant:4";
    options.report_every = 1000;
    Models x(kNodes, std::vector<float>(kDimension));
    Models means(kNodes, std::vector<float>(kDimension));
    std::vector<double> distances(kNodes);
    const auto statuses = play(kNodes, [&](Rank rank) {
      auto mine = options;
      mine.rank = rank;
      const auto index = static_cast<std::size_t>(rank);
      Optimizer optimizer(mine, x[index]);
      std::vector<float> gradient(kDimension);
      for (Round round = 0; round < 6; ++round) {
        pull(rank, round, x[index], gradient);
        if (Status status = optimizer.step(gradient); !status.ok()) {
          return status;
        }
        const auto distance = optimizer.mean_model(means[index]);
        if (!distance.ok()) {
          return distance.status();
        }
        distances[index] = *distance;
        CHECK(*optimizer.mean_model(means[index]) == *distance);  // again, at the same step
        if (Status status = optimizer.evaluated(1); !status.ok()) {
          return status;
        }
      }
      std::vector<float> shorter(kDimension - 1);
      CHECK_THROWS_AS((void)optimizer.mean_model(shorter), Error);
      return optimizer.finish();
    });
    for (const Status& status : statuses) {
      CAPTURE(status.message());
      CHECK(status.ok());
    }
    double squares = 0;
    for (std::size_t k = 0; k < kDimension; ++k) {
      double mean = 0;
      for (const auto& model : x) {
        mean += static_cast<double>(model[k]) / kNodes;
      }
      CHECK(means[0][k] == doctest::Approx(mean));
      for (const auto& model : x) {
        squares += (static_cast<double>(model[k]) - mean) * (static_cast<double>(model[k]) - mean);
      }
    }
    CHECK(means == Models(kNodes, means[0]));
    CHECK(distances == std::vector<double>(kNodes, distances[0]));
    CHECK(distances[0] == doctest::Approx(squares / kNodes));
    CHECK(watcher.evaluations.at(5).point.consensus_distance == distances[0]);
  }
}

TEST_CASE("with keys too nodes tell node 0 how they stand, and have their mean") {
  if (!available("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  Watcher watcher;
  watcher.health = true;
  auto options = watched(&watcher);
  options.store = nullptr;
  options.transport = "zmq";
  options.rendezvous = fmt::format("tcp://127.0.0.1:{}", free_port());
  const auto statuses = play(kNodes, [&](Rank rank) {
    auto mine = options;
    mine.rank = rank;
    mine.security = security_of(kNodes, rank);
    std::vector<float> x(kDimension);
    std::vector<float> mean(kDimension);
    Optimizer optimizer(mine, x);
    std::vector<float> gradient(kDimension);
    for (Round round = 0; round < kRounds; ++round) {
      pull(rank, round, x, gradient);
      if (Status status = optimizer.step(gradient); !status.ok()) {
        return status;
      }
      if (round % 7 == 6) {
        if (const auto distance = optimizer.mean_model(mean); !distance.ok()) {
          return distance.status();
        }
      }
    }
    return optimizer.finish();
  });
  for (const Status& status : statuses) {
    CHECK_MESSAGE(status.ok(), status.message());
  }
  CHECK(watcher.evaluations.back().nodes.size() == kNodes);
  CHECK(watcher.evaluations.back().complete);
}

TEST_CASE("a run goes on without a store that takes no reports, and says so once") {
  /// Fails what concerns reports.
  class Broken final : public Store {
   public:
    Status set(std::string_view key, std::span<const std::byte> value) override {
      return of_reports(key) ? Status(Fault::io, "the store is gone") : inner_->set(key, value);
    }
    Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override {
      if (of_reports(key)) {
        ++asked;
        return Status(Fault::io, "the store is gone");
      }
      return inner_->get(key, deadline);
    }
    Status remove(std::string_view key) override { return inner_->remove(key); }

    std::atomic<int> asked = 0;

   private:
    static bool of_reports(std::string_view key) {
      return key.find("standing") != std::string_view::npos;
    }
    std::shared_ptr<Store> inner_ = make_memory_store();
  };
  if (!available("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto broken = std::make_shared<Broken>();
  Watcher watcher;
  watcher.health = true;
  auto options = watched(&watcher);
  options.transport = "zmq";
  options.store = broken;
  trained(options);
  CHECK(broken->asked <= kNodes);  // once by each
  CHECK(watcher.warned.find("the store is gone") != std::string::npos);
  REQUIRE(watcher.evaluations.size() == kRounds / 5 + 1);
  REQUIRE(watcher.evaluations.back().nodes.size() == 1);
  CHECK(watcher.evaluations.back().nodes[0].round == kRounds);
  CHECK_FALSE(watcher.evaluations.back().complete);
  CHECK(watcher.ends.at(0).ok());
}

TEST_CASE("a loss that is no number is an evaluation all the same, and one may follow the end") {
  Watcher watcher;
  watcher.health = true;
  auto options = watched(&watcher);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto statuses = play(kNodes, [&](Rank rank) {
    auto mine = options;
    mine.rank = rank;
    std::vector<float> x(kDimension);
    Optimizer optimizer(mine, x);
    const std::vector<float> gradient(kDimension, 0.5F);
    if (Status status = optimizer.step(gradient); !status.ok()) {
      return status;
    }
    if (Status status = optimizer.evaluated(nan, 0.5); !status.ok()) {
      return status;
    }
    if (Status status = optimizer.finish(); !status.ok()) {
      return status;
    }
    return optimizer.evaluated(0.25);
  });
  for (const Status& status : statuses) {
    CHECK_MESSAGE(status.ok(), status.message());
  }
  REQUIRE(watcher.evaluations.size() == 3);
  CHECK_FALSE(watcher.evaluations[0].report);
  CHECK(watcher.evaluations[1].report);
  CHECK_FALSE(watcher.evaluations[2].report);
  CHECK(watcher.evaluations[2].point.loss == 0.25);
  CHECK(watcher.evaluations[2].nodes.size() == kNodes);
}

}  // namespace sotto::test::report_test

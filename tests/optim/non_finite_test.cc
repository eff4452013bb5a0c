// A NaN or an infinity is noticed, named and kept out, in every algorithm.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "optim/cluster.h"

namespace sotto::test::non_finite_test {

namespace {

bool finite(std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) {
      return false;
    }
  }
  return true;
}

/// One round of a node that is alone, by hand: its exchanges have no peers. `final` says whether a
/// fault is that of an exchange, which ends a run in any case.
Status lone_round(Algorithm& node, std::span<const float> gradient, bool* final = nullptr) {
  const auto finish = [&]() -> Status {
    Exchange exchange;
    while (true) {
      const auto more = node.next_exchange(exchange);
      Status status = more.status();
      if (status.ok()) {
        if (!*more) {
          return {};
        }
        status = node.complete(exchange);
      }
      if (!status.ok()) {
        if (final != nullptr) {
          *final = true;
        }
        return status;
      }
    }
  };
  if (!node.accepts_gradient()) {
    node.begin_round();
  }
  if (Status status = finish(); !status.ok()) {
    return status;
  }
  if (Status status = node.take_gradient(gradient); !status.ok()) {
    return status;
  }
  return finish();
}

}  // namespace

TEST_CASE(
    "a gradient that is not finite is named by node, round and element, and changes nothing") {
  const float inf = std::numeric_limits<float>::infinity();
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    const ClusterOptions options{
        .algorithm = std::string(info.name), .nodes = 1, .dimension = 40, .step = {.rule = "adam"}};
    Cluster clean(options);
    Cluster hit(options);
    std::vector<float> good(40, 0.5F);
    std::vector<float> bad = good;
    bad[17] = std::nanf("");
    bad[23] = -inf;
    for (int t = 0; t < 6; ++t) {
      REQUIRE(lone_round(clean.driver.node(0), good).ok());
      if (t == 3) {
        const auto before = hit.x;
        const Status status = lone_round(hit.driver.node(0), bad);
        CAPTURE(status.message());
        CHECK(status.fault() == Fault::non_finite);
        for (const char* part :
             {"node 0, round 3", "the gradient has 2 elements of 40", "number 17, nan"}) {
          CHECK(status.message().find(part) != std::string::npos);
        }
        CHECK(hit.x == before);
      }
      REQUIRE(lone_round(hit.driver.node(0), good).ok());
      CHECK(hit.x == clean.x);
    }
  }
}

TEST_CASE("one node's NaN stops the round at that node") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    Cluster cluster({.algorithm = std::string(info.name), .nodes = 4, .dimension = 8});
    const auto poisoned = [](Rank rank, Round round, std::span<const float>, std::span<float> g) {
      std::fill(g.begin(), g.end(), 0.1F);
      if (rank == 2 && round == 5) {
        g[3] = std::nanf("");
      }
    };
    const Status status = cluster.driver.run(10, poisoned);
    CHECK(status.fault() == Fault::non_finite);
    CHECK(status.message().find("node 2, round 5: the gradient has 1 elements of 8") == 0);
    for (const auto& model : cluster.x) {
      CHECK(finite(model));
    }
  }
}

TEST_CASE("an update that overflows is noticed before it is sent or kept") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    Cluster cluster({.algorithm = std::string(info.name),
                     .nodes = 4,
                     .dimension = 8,
                     .step = {.learning_rate = 1e38},
                     .freeze_step = 5});
    const auto steep = [](Rank, Round round, std::span<const float>, std::span<float> g) {
      std::fill(g.begin(), g.end(), round < 2 ? 0.0F : 1e5F);
    };
    const Status status = cluster.driver.run(5, steep);
    CAPTURE(status.message());
    CHECK(status.fault() == Fault::non_finite);
    // LAMB's steps are in proportion to the model: the first one just fits.
    const bool scaled = info.step_rules.only == "lamb";
    CHECK(status.message().find(scaled ? "node 0, round 3: " : "node 0, round 2: ") == 0);
    for (const auto& model : cluster.x) {
      CHECK(finite(model));
    }
  }
}

TEST_CASE("an update that overflows at the end of a long model leaves it finite") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    // Long enough for several chunks of every format, in one piece.
    Cluster cluster({.algorithm = std::string(info.name),
                     .nodes = 2,
                     .dimension = 40'000,
                     .step = {.learning_rate = 1e38},
                     .freeze_step = 5});
    const auto steep = [](Rank, Round, std::span<const float>, std::span<float> g) {
      std::fill(g.begin(), g.end(), 1e-38F);
      g.back() = 1e5F;
    };
    const Status status = cluster.driver.run(5, steep);
    CAPTURE(status.message());
    CHECK(status.fault() == Fault::non_finite);
    for (const auto& model : cluster.x) {
      CHECK(finite(model));
    }
  }
}

TEST_CASE("after an update that overflowed no other gradient is taken") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const float momentum : {0.0F, 0.9F}) {
      CAPTURE(info.name);
      CAPTURE(momentum);
      ClusterOptions options{.algorithm = std::string(info.name),
                             .nodes = 1,
                             .dimension = 8,
                             .step = {.learning_rate = 1e38, .momentum = momentum},
                             .freeze_step = 5};
      Cluster cluster(options);
      Algorithm& node = cluster.driver.node(0);
      const std::vector<float> small(8, 1e-38F);
      Status status;
      bool final = false;
      for (int t = 0; t < 4 && status.ok(); ++t) {  // LAMB's first steps just fit
        status = lone_round(node, std::vector<float>(8, 1e5F), &final);
      }
      REQUIRE(status.fault() == Fault::non_finite);
      if (final) {
        continue;
      }
      REQUIRE(node.accepts_gradient());
      const auto before = cluster.x;
      for (int t = 0; t < 2; ++t) {
        const Status again = lone_round(node, small);
        CAPTURE(again.message());
        CHECK(again.fault() == Fault::non_finite);
        CHECK(cluster.x == before);
      }
    }
  }
}

TEST_CASE("a model that overflows as it takes in its neighbours' is noticed") {
  // Steps of ±3e38 are finite, and so is what is sent; how far the nodes are apart is not.
  for (const std::string algorithm : {"choco", "deepsqueeze", "pushsum"}) {
    CAPTURE(algorithm);
    Cluster cluster({.algorithm = algorithm,
                     .compressor = "none",
                     .nodes = 4,
                     .dimension = 8,
                     .step = {.learning_rate = 1},
                     .initial_scale = 0});
    const auto apart = [](Rank rank, Round, std::span<const float>, std::span<float> g) {
      std::fill(g.begin(), g.end(), rank % 2 == 0 ? 3e38F : -3e38F);
    };
    const Status status = cluster.driver.run(1, apart);
    CAPTURE(status.message());
    CHECK(status.fault() == Fault::non_finite);
    CHECK(status.message().find("the updated model has 8 elements of 8 that are not finite") !=
          std::string::npos);
  }
}

TEST_CASE("a second moment that overflows is noticed, which would make all later steps zero") {
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.step_rules.only == "sgd" || info.step_rules.only == "adamw") {
      continue;  // they have none of matrices
    }
    CAPTURE(info.name);
    Cluster cluster({.algorithm = std::string(info.name),
                     .nodes = 4,
                     .dimension = 8,
                     .step = {.rule = "adam", .learning_rate = 0.01},
                     .freeze_step = 8});
    const auto steep = [](Rank, Round round, std::span<const float>, std::span<float> g) {
      std::fill(g.begin(), g.end(), round == 3 ? 1e25F : 0.1F);
    };
    const Status status = cluster.driver.run(8, steep);
    CAPTURE(status.message());
    CHECK(status.fault() == Fault::non_finite);
    CHECK(status.message().find("node 0, round 3: the second moment overflows in ") == 0);
    for (const auto& model : cluster.x) {
      CHECK(finite(model));
    }
  }
}

TEST_CASE("a sum of gradients that overflows is noticed by all-reduce") {
  Cluster cluster({.algorithm = "allreduce", .nodes = 3, .dimension = 5});
  const auto huge = [](Rank, Round, std::span<const float>, std::span<float> g) {
    std::fill(g.begin(), g.end(), 2e38F);
  };
  const auto before = cluster.x;
  const Status status = cluster.driver.run(1, huge);
  CHECK(status.fault() == Fault::non_finite);
  CHECK(status.message().find("sum of the gradients") != std::string::npos);
  CHECK(cluster.x == before);
}

}  // namespace sotto::test::non_finite_test

#include <sotto/optim/algorithms/power_gossip.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/frame.h>

#include "optim/cluster.h"

namespace sotto::test::power_gossip_test {

namespace {

constexpr std::size_t kDimension = 20 * 12 + 20 + 6 * 18;

ParameterLayout network() {
  ParameterLayout layout;
  append_block(layout, "hidden.weight", {20, 12});
  append_block(layout, "hidden.bias", {20});
  append_block(layout, "conv.weight", {6, 2, 3, 3});
  return layout;
}

/// A cluster whose nodes know the tensors, and start from models of their own unless alike.
struct Network {
  Network(const ClusterOptions& options, const ParameterLayout& layout, bool alike)
      : x(options.nodes, std::vector<float>(dimension_of(layout))) {
    const auto topology = cluster_topology(options);
    for (std::size_t rank = 0; rank < options.nodes; ++rank) {
      RandomStream random({.seed = options.seed,
                           .rank = alike ? 0 : static_cast<Rank>(rank),
                           .purpose = Purpose::initialize});
      for (float& value : x[rank]) {
        value = static_cast<float>(random.normal());
      }
      AlgorithmSetup setup = node_setup(options, rank, x[rank], topology);
      setup.layout = layout;
      driver.add(make_algorithm(options.algorithm, std::move(setup)));
    }
  }

  std::vector<double> mean() const {
    std::vector<double> mean(x[0].size());
    for (const auto& model : x) {
      for (std::size_t k = 0; k < mean.size(); ++k) {
        mean[k] += static_cast<double>(model[k]) / static_cast<double>(x.size());
      }
    }
    return mean;
  }
  /// The root mean square distance of the models from their mean.
  double disagreement() const {
    const auto centre = mean();
    double sum = 0;
    for (const auto& model : x) {
      for (std::size_t k = 0; k < centre.size(); ++k) {
        const double far = static_cast<double>(model[k]) - centre[k];
        sum += far * far;
      }
    }
    return std::sqrt(sum / static_cast<double>(x.size() * centre.size()));
  }

  LockstepDriver driver{Delivery::eager};
  std::vector<std::vector<float>> x;
};

ClusterOptions options_for(std::size_t nodes, const std::string& compressor) {
  return {.algorithm = "powergossip",
          .compressor = compressor,
          .nodes = nodes,
          .dimension = kDimension,
          .step = {.learning_rate = 0.05}};
}

void no_gradient(Rank, Round, std::span<const float>, std::span<float> g) {
  std::ranges::fill(g, 0.0F);
}

using Matrix = std::vector<std::vector<double>>;  // rows

struct Method {
  int rank = 1;
  int steps = 1;
};

/// The paper's algorithm for one matrix, in double precision and with nothing clever: models of
/// rows × columns, K columns, `steps` steps a round.
class Script {
 public:
  Script(Matrix start, std::shared_ptr<const Topology> graph, std::uint64_t seed, std::size_t rank,
         int steps)
      : models(static_cast<std::size_t>(graph->nodes()), start),
        graph_(std::move(graph)),
        seed_(seed),
        rank_(rank),
        steps_(steps) {}

  /// Averages; the gradient is the caller's.
  void gossip(Round round) {
    std::map<std::pair<Rank, Rank>, RandomStream> draws;
    for (int step = 0; step < steps_; ++step) {
      const std::vector<Matrix> before = models;
      for (Rank i = 0; i < graph_->nodes(); ++i) {
        for (const Edge& edge : graph_->in_edges(i, round)) {
          if (i < edge.peer) {
            RandomStream& random =
                draws
                    .try_emplace({i, edge.peer},
                                 RandomKey{.seed = seed_,
                                           .rank = i,
                                           .round = round,
                                           .purpose = Purpose::select,
                                           .bucket = static_cast<std::uint32_t>(edge.peer)})
                    .first->second;
            average(before, i, edge, random);
          }
        }
      }
    }
  }

  std::vector<Matrix> models;

 private:
  struct Iteration {
    bool left = false;  // the next basis multiplies from the left
    Matrix basis;       // columns of the matrix, or rows, × K; before orthonormalization
  };

  void average(const std::vector<Matrix>& before, Rank i, const Edge& edge, RandomStream& random) {
    const Matrix& low = before[static_cast<std::size_t>(i)];
    const Matrix& high = before[static_cast<std::size_t>(edge.peer)];
    Iteration& link = links_[{i, edge.peer}];
    const std::size_t rows = low.size();
    const std::size_t columns = low[0].size();
    const std::size_t from = link.left ? rows : columns;
    const std::size_t to = link.left ? columns : rows;
    link.basis.resize(from, std::vector<double>(rank_));
    const Matrix b = orthonormal(link.basis, random);
    const auto d = [&](std::size_t row, std::size_t column) {
      return low[row][column] - high[row][column];
    };
    Matrix product(to, std::vector<double>(rank_));
    for (std::size_t t = 0; t < to; ++t) {
      for (std::size_t f = 0; f < from; ++f) {
        for (std::size_t k = 0; k < rank_; ++k) {
          product[t][k] += (link.left ? d(f, t) : d(t, f)) * b[f][k];
        }
      }
    }
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        double c = 0;
        for (std::size_t k = 0; k < rank_; ++k) {
          c += link.left ? b[row][k] * product[column][k] : product[row][k] * b[column][k];
        }
        const auto w = static_cast<double>(edge.weight);
        models[static_cast<std::size_t>(i)][row][column] -= w * c;
        models[static_cast<std::size_t>(edge.peer)][row][column] += w * c;
      }
    }
    link = {.left = !link.left, .basis = std::move(product)};
  }

  Matrix orthonormal(Matrix b, RandomStream& random) const {
    for (std::size_t k = 0; k < rank_; ++k) {
      if (std::ranges::all_of(b, [k](const auto& row) { return row[k] == 0; })) {
        for (auto& row : b) {
          row[k] = 2 * random.uniform() - 1;
        }
      }
    }
    for (std::size_t k = 0; k < rank_; ++k) {
      for (std::size_t l = 0; l < k; ++l) {
        double along = 0;
        for (const auto& row : b) {
          along += row[k] * row[l];
        }
        for (auto& row : b) {
          row[k] -= along * row[l];
        }
      }
      double square = 0;
      for (const auto& row : b) {
        square += row[k] * row[k];
      }
      for (auto& row : b) {
        row[k] /= std::sqrt(square);
      }
    }
    return b;
  }

  std::shared_ptr<const Topology> graph_;
  std::uint64_t seed_;
  std::size_t rank_;
  int steps_;
  std::map<std::pair<Rank, Rank>, Iteration> links_;
};

}  // namespace

TEST_CASE("PowerGossip is the paper's algorithm, taken down in double precision") {
  constexpr std::size_t kRows = 14;  // not fewer than columns: both start with a basis on the right
  constexpr std::size_t kColumns = 9;
  constexpr double kRate = 0.1;
  ParameterLayout layout;
  append_block(layout, "w", {kRows, kColumns});
  for (const std::string graph : {"ring", "star", "matching:3"}) {
    for (const Method& method : {Method{1, 1}, Method{1, 3}, Method{2, 2}}) {
      CAPTURE(graph);
      CAPTURE(method.rank);
      CAPTURE(method.steps);
      auto options = options_for(
          6, "lowrank:" + std::to_string(method.rank) + ",steps=" + std::to_string(method.steps));
      options.topology = graph;
      options.step.learning_rate = kRate;
      Network run(options, layout, /*alike=*/true);
      Matrix start(kRows, std::vector<double>(kColumns));
      for (std::size_t e = 0; e < run.x[0].size(); ++e) {
        start[e / kColumns][e % kColumns] = static_cast<double>(run.x[0][e]);
      }
      Script script(start, cluster_topology(options), options.seed,
                    static_cast<std::size_t>(method.rank), method.steps);
      // Each node pulls towards a matrix of its own.
      const auto target = [](std::size_t node, std::size_t e) {
        return std::sin(static_cast<double>(1 + e * (node + 1)));
      };
      const auto pull = [&](Rank node, Round, std::span<const float> x, std::span<float> g) {
        for (std::size_t e = 0; e < x.size(); ++e) {
          g[e] = static_cast<float>(static_cast<double>(x[e]) -
                                    target(static_cast<std::size_t>(node), e));
        }
      };
      double farthest = 0;
      // Directions of nearly equal length are told apart by rounding in the end, tenfold in three
      // rounds: so few rounds are compared.
      for (Round round = 0; round < 8; ++round) {
        const Status status = run.driver.run(1, pull);
        CAPTURE(status.message());
        REQUIRE(status.ok());
        const auto before = script.models;
        script.gossip(round);
        for (std::size_t node = 0; node < 6; ++node) {
          for (std::size_t e = 0; e < kRows * kColumns; ++e) {
            double& x = script.models[node][e / kColumns][e % kColumns];
            x -= kRate * (before[node][e / kColumns][e % kColumns] - target(node, e));
            farthest = std::max(farthest, std::abs(x - static_cast<double>(run.x[node][e])));
          }
        }
      }
      CHECK(farthest < 2e-5);
      CHECK(run.disagreement() > 1e-2);  // it is not that there was nothing to compare
    }
  }
}

TEST_CASE("PowerGossip on its own brings any models together, and leaves their mean where it is") {
  for (const std::string graph : {"ring", "complete", "base:2", "matching:20"}) {
    for (const std::string compressor :
         {"lowrank:1", "lowrank:2", "lowrank:1,steps=3", "lowrank:1,start=random"}) {
      CAPTURE(graph);
      CAPTURE(compressor);
      auto options = options_for(6, compressor);
      options.topology = graph;
      Network run(options, network(), /*alike=*/false);
      const auto mean = run.mean();
      double before = run.disagreement();
      for (int t = 0; t < 40; ++t) {
        REQUIRE(run.driver.run(50, no_gradient).ok());
        const double after = run.disagreement();
        CHECK((after < before || after < 1e-6));
        before = after;
      }
      CAPTURE(before);
      CHECK(before < 1e-6);
      const auto now = run.mean();
      for (std::size_t k = 0; k < mean.size(); ++k) {
        // 2000 rounds of at most 6 × 2 additions, each within half a unit in the last place.
        REQUIRE(std::abs(now[k] - mean[k]) < 2e-5);
      }
    }
  }
}

TEST_CASE("two nodes whose models differ by K columns agree after a step from either side") {
  ParameterLayout layout;
  append_block(layout, "w", {30, 20});
  Network run(options_for(2, "lowrank:2"), layout, /*alike=*/true);
  for (std::size_t e = 0; e < 600; ++e) {
    const auto row = static_cast<double>(e / 20);
    const auto column = static_cast<double>(e % 20);
    run.x[1][e] += static_cast<float>(std::sin(row) * std::cos(column) + row * column / 600);
  }
  REQUIRE(run.driver.run(1, no_gradient).ok());
  CHECK(run.disagreement() > 1e-2);
  REQUIRE(run.driver.run(1, no_gradient).ok());
  CHECK(run.disagreement() < 1e-6);
}

TEST_CASE("PowerGossip is D-PSGD, to the bit, where no matrix is worth factoring") {
  for (const std::string graph : {"ring", "base:2"}) {
    CAPTURE(graph);
    // Four products of 12 columns are more than each matrix has: all is averaged as it is.
    auto options = options_for(5, "lowrank:12,steps=4");
    options.topology = graph;
    Network run(options, network(), /*alike=*/true);
    options.algorithm = "dpsgd";
    options.compressor = "none";
    Network plain(options, network(), /*alike=*/true);
    const Quadratic task(5, kDimension, 5, 0.1);
    REQUIRE(run.driver.run(30, task).ok());
    REQUIRE(plain.driver.run(30, task).ok());
    for (std::size_t rank = 0; rank < 5; ++rank) {
      CHECK(same_bits(run.x[rank], plain.x[rank]));
    }
  }
}

TEST_CASE("PowerGossip's mean model follows SGD on the mean gradient") {
  constexpr double kRate = 0.05;
  Network run(options_for(5, "lowrank:1"), network(), /*alike=*/false);
  // h is the same at all nodes, so that the mean gradient is the gradient at the mean.
  const Quadratic task(5, kDimension, 5);
  auto expected = run.mean();
  for (int t = 0; t < 100; ++t) {
    REQUIRE(run.driver.run(1, task).ok());
    task.descend(kRate, expected);
  }
  const auto mean = run.mean();
  for (std::size_t k = 0; k < kDimension; ++k) {
    REQUIRE(mean[k] == doctest::Approx(expected[k]).epsilon(1e-5).scale(1));
  }
}

TEST_CASE("PowerGossip sends one factor of each matrix a step, and all else once a round") {
  Network run(options_for(4, "lowrank:2,steps=3"), network(), /*alike=*/true);
  REQUIRE(run.driver.run(2, Quadratic(4, kDimension, 4)).ok());
  // Right, left, right, left, right, left: three products of each length.
  const std::uint64_t floats = 3 * 2 * (20 + 12 + 6 + 18) + 2 * 20;
  CHECK(run.driver.traffic().size() == 8);
  for (const auto& [edge, traffic] : run.driver.traffic()) {
    CHECK(traffic.frames == 6);
    CHECK(traffic.bytes == floats * 4 + 6 * (8 + kFrameHeaderBytes));
  }
}

TEST_CASE("PowerGossip factors a matrix where its products are smaller, and only there") {
  struct Case {
    std::size_t rows;
    std::size_t columns;
    int rank;
    int steps;
    bool factored;
  };
  for (const Case& c : {
           Case{12, 12, 11, 1, true},   // 132 of 144 elements
           Case{12, 12, 12, 1, false},  // 144
           Case{12, 12, 2, 5, true},    // 120
           Case{12, 12, 2, 6, false},   // 144
           Case{12, 12, 1, 64, false},  // 768
           Case{100, 4, 4, 1, true},    // 208 of 400: 400 from the right, 16 from the left
           Case{100, 4, 5, 1, false},   // 260, but 500 in every other round
           Case{4, 100, 4, 1, true},
           Case{4, 100, 5, 1, false},
       }) {
    CAPTURE(c.rows);
    CAPTURE(c.columns);
    CAPTURE(c.rank);
    CAPTURE(c.steps);
    ParameterLayout layout;
    append_block(layout, "w", {c.rows, c.columns});
    auto options =
        options_for(2, "lowrank:" + std::to_string(c.rank) + ",steps=" + std::to_string(c.steps));
    options.dimension = c.rows * c.columns;
    Network run(options, layout, /*alike=*/false);
    const double before = run.disagreement();
    REQUIRE(run.driver.run(2, no_gradient).ok());
    CHECK(run.disagreement() < before);
    const auto steps = static_cast<std::size_t>(c.factored ? 2 * c.steps : 2);
    const std::size_t floats =
        c.factored ? steps * static_cast<std::size_t>(c.rank) * (c.rows + c.columns) / 2
                   : 2 * c.rows * c.columns;
    CHECK(run.driver.traffic().size() == 2);
    for (const auto& [edge, traffic] : run.driver.traffic()) {
      CHECK(traffic.frames == steps);
      CHECK(traffic.bytes == floats * 4 + steps * (8 + kFrameHeaderBytes));
    }
  }
}

TEST_CASE("PowerGossip runs at 1 to 17 nodes, in any order of delivery") {
  for (std::size_t nodes = 1; nodes <= 17; ++nodes) {
    for (const std::size_t dimension : {0U, 1U, 101U, 10007U}) {
      CAPTURE(nodes);
      CAPTURE(dimension);
      auto options = options_for(nodes, "lowrank:3,steps=2");
      options.dimension = dimension;
      options.topology = nodes % 2 == 0 ? "ring" : "complete";
      Cluster eager(options);
      options.delivery = Delivery::late;
      Cluster late(options);
      const Quadratic task(nodes, dimension, 5, 0.1);
      REQUIRE(eager.driver.run(3, task).ok());
      REQUIRE(late.driver.run(3, task).ok());
      CHECK(eager.x == late.x);
    }
  }
}

TEST_CASE("PowerGossip, saved where its exchange is done and its gradient is not, continues") {
  // With local steps in front, the exchange of a round begins before its gradients.
  for (const std::string graph : {"ring", "matching:4"}) {
    CAPTURE(graph);
    auto options = options_for(5, "lowrank:2,steps=3");
    options.topology = graph;
    options.communication_interval = 3;
    const Quadratic task(5, kDimension, 3, 0.2);
    Cluster whole(options);
    REQUIRE(whole.driver.run(30, task).ok());
    Cluster first(options);
    REQUIRE(first.driver.run(16, task).ok());
    Cluster second(options);
    second.x = first.x;
    for (std::size_t rank = 0; rank < 5; ++rank) {
      ByteBuffer saved;
      first.driver.node(rank).save(saved);
      ByteReader in(saved.bytes());
      REQUIRE(second.driver.node(rank).load(in).ok());
    }
    REQUIRE(second.driver.run(14, task).ok());
    CHECK(second.x == whole.x);
  }
}

TEST_CASE("ends of an edge with different bases notice, and say so") {
  const auto options = options_for(3, "lowrank:1");
  std::vector<std::vector<float>> x(3, std::vector<float>(kDimension, 1.0F));
  LockstepDriver driver;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    AlgorithmSetup setup = node_setup(options, rank, x[rank], cluster_topology(options));
    setup.seed = rank == 1 ? 8 : 9;
    driver.add(make_algorithm("powergossip", std::move(setup)));
  }
  const Status status = driver.run(1, no_gradient);
  CHECK(status.fault() == Fault::unexpected);
  CHECK(status.message().find("node 0, round 0: frame from node 1") == 0);
  CHECK(status.message().find("different bases") != std::string::npos);
}

TEST_CASE("PowerGossip refuses other compressors, and edges of one direction in any case") {
  const auto refusal = [](ClusterOptions options) -> std::string {
    try {
      const Cluster cluster(options);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  auto options = options_for(4, "topk:0.1");
  CHECK(refusal(options).find("use lowrank:1") != std::string::npos);
  options = options_for(4, "lowrank:1; 1d=none");
  CHECK(refusal(options).find("use lowrank:1") != std::string::npos);
  options = options_for(4, "lowrank:1");
  options.topology = "exponential";
  options.allow_contract_violation = true;
  CHECK(refusal(options).find("does not hear the other") != std::string::npos);
}

}  // namespace sotto::test::power_gossip_test

// D²: nodes with different data reach the common optimum with a constant learning rate.
#include <sotto/optim/algorithms/d2.h>

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "optim/cluster.h"
#include "optim/uneven.h"

namespace sotto::test::d2_test {

namespace {

/// Runs D²'s recurrence as the paper writes it, in double precision, on lazy ring weights.
class Paper {
 public:
  Paper(std::size_t nodes, std::vector<float> start, double rate)
      : rate_(rate),
        x_(nodes, std::vector<double>(start.begin(), start.end())),
        before_(x_),
        g_before_(nodes, std::vector<double>(start.size())),
        topology_(make_topology("ring", static_cast<int>(nodes), {.lazy = true})) {}

  void step(const Uneven& task, Round round) {
    const std::size_t nodes = x_.size();
    const std::size_t dimension = x_[0].size();
    std::vector<std::vector<double>> y = x_;
    std::vector<std::vector<double>> g = x_;
    for (std::size_t i = 0; i < nodes; ++i) {
      for (std::size_t k = 0; k < dimension; ++k) {
        g[i][k] = task.slope(i, k, x_[i][k]);
        y[i][k] = round == 0 ? x_[i][k] - rate_ * g[i][k]
                             : 2 * x_[i][k] - before_[i][k] - rate_ * (g[i][k] - g_before_[i][k]);
      }
    }
    before_ = x_;
    g_before_ = g;
    for (std::size_t i = 0; i < nodes; ++i) {
      const auto rank = static_cast<Rank>(i);
      for (std::size_t k = 0; k < dimension; ++k) {
        x_[i][k] = static_cast<double>(topology_->self_weight(rank, 0)) * y[i][k];
        for (const Edge& edge : topology_->in_edges(rank, 0)) {
          x_[i][k] += static_cast<double>(edge.weight) * y[static_cast<std::size_t>(edge.peer)][k];
        }
      }
    }
  }

  const std::vector<std::vector<double>>& models() const { return x_; }

 private:
  double rate_;
  std::vector<std::vector<double>> x_;
  std::vector<std::vector<double>> before_;
  std::vector<std::vector<double>> g_before_;
  std::shared_ptr<const Topology> topology_;
};

ClusterOptions options_for(const char* algorithm) {
  return {.algorithm = algorithm, .dimension = 16, .step = {.learning_rate = 0.1}};
}

}  // namespace

TEST_CASE("D² follows the paper's recurrence") {
  Cluster cluster(options_for("d2"));
  Paper paper(8, cluster.x[0], static_cast<double>(0.1F));
  const Uneven task(8, 16, 7);
  for (Round t = 0; t < 300; ++t) {
    REQUIRE(cluster.driver.run(1, task).ok());
    paper.step(task, t);
    for (std::size_t i = 0; i < 8; ++i) {
      for (std::size_t k = 0; k < 16; ++k) {
        REQUIRE(std::fabs(double{cluster.x[i][k]} - paper.models()[i][k]) < 1e-5);
      }
    }
  }
}

TEST_CASE("D² has no floor where D-PSGD has one: every node reaches the optimum") {
  const Uneven task(8, 16, 7);
  Cluster d2(options_for("d2"));
  Cluster dpsgd(options_for("dpsgd"));
  REQUIRE(d2.driver.run(3000, task).ok());
  REQUIRE(dpsgd.driver.run(3000, task).ok());
  const double without_floor = task.worst_excess(d2.x);
  const double with_floor = task.worst_excess(dpsgd.x);
  const double mean_with_floor = task.excess(dpsgd.mean());
  CAPTURE(without_floor);
  CAPTURE(with_floor);
  CAPTURE(mean_with_floor);
  CHECK(without_floor < 1e-10);
  CHECK(with_floor > 1e-2);
  CHECK(mean_with_floor > 1e-4);
}

TEST_CASE("D²'s corrections cancel over the nodes, and stay cancelled in long runs") {
  Cluster cluster(options_for("d2"));
  const Uneven task(8, 16, 7);
  REQUIRE(cluster.driver.run(20000, task).ok());
  CHECK(task.worst_excess(cluster.x) < 1e-10);
  for (std::size_t k = 0; k < 16; ++k) {
    double sum = 0;
    for (std::size_t rank = 0; rank < 8; ++rank) {
      sum += static_cast<double>(cluster.node<D2>(rank).correction()[k]);
    }
    CHECK(std::fabs(sum) < 1e-6);
  }
}

TEST_CASE("D² on equal models and equal gradients is plain SGD") {
  Cluster cluster({.algorithm = "d2", .nodes = 5, .step = {.learning_rate = 0.1}});
  Cluster alone({.algorithm = "d2", .nodes = 1, .step = {.learning_rate = 0.1}});
  const auto same = [](Rank, Round, std::span<const float> x, std::span<float> g) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      g[k] = x[k] - 1;
    }
  };
  REQUIRE(cluster.driver.run(50, same).ok());
  REQUIRE(alone.driver.run(50, same).ok());
  for (const auto& model : cluster.x) {
    CHECK(model == alone.x[0]);
  }
}

TEST_CASE("D² runs at every number of nodes and parameters") {
  for (std::size_t nodes = 1; nodes <= 17; ++nodes) {
    for (const std::size_t dimension : {0U, 1U, 127U, 5003U}) {
      CAPTURE(nodes);
      CAPTURE(dimension);
      Cluster cluster({.algorithm = "d2", .nodes = nodes, .dimension = dimension});
      const Status status = cluster.driver.run(3, Quadratic(nodes, dimension, 5));
      CAPTURE(status.message());
      REQUIRE(status.ok());
    }
  }
}

}  // namespace sotto::test::d2_test

#include "contest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/algorithms/push_sum.h>
#include <sotto/optim/registry.h>
#include <sotto/sim/lockstep.h>
#include <sotto/topology/registry.h>

namespace sotto::bench {
namespace {

std::unique_ptr<Algorithm> build(const Learner& learner, int nodes, Rank rank,
                                 std::span<float> parameters, std::shared_ptr<const Topology> graph,
                                 double rate, std::uint64_t seed) {
  AlgorithmSetup setup;
  setup.rank = rank;
  setup.nodes = nodes;
  setup.parameters = parameters;
  setup.topology = std::move(graph);
  setup.step_rule = make_step_rule({.learning_rate = rate});
  setup.compressor =
      make_compressor(learner.compressor, algorithm_info(learner.algorithm).contract);
  setup.seed = seed;
  setup.allow_contract_violation = true;  // nodes whom nobody trusts back stay alone
  return make_algorithm(learner.algorithm, std::move(setup));
}

}  // namespace

Play play(const Learner& learner, const Stream& stream, double rate, std::uint64_t seed) {
  const bool central = learner.graph == nullptr;
  const int nodes = central ? 1 : stream.nodes();
  const auto graph = central ? make_topology("complete", 1) : learner.graph;
  std::vector<std::unique_ptr<SupervisedTask>> tasks;
  tasks.reserve(static_cast<std::size_t>(stream.nodes()));
  for (Rank rank = 0; rank < stream.nodes(); ++rank) {
    tasks.push_back(stream.task(rank));
  }
  const std::size_t dimension = tasks[0]->dimension();
  std::vector<std::vector<float>> x(static_cast<std::size_t>(nodes), std::vector<float>(dimension));
  LockstepDriver driver;
  for (Rank rank = 0; rank < nodes; ++rank) {
    driver.add(build(learner, nodes, rank, x[static_cast<std::size_t>(rank)], graph, rate, seed));
  }

  double loss = 0;
  std::vector<float> share(dimension);
  const auto alone = [&](Rank rank, Round round, std::span<const float> at, std::span<float> g) {
    loss += tasks[static_cast<std::size_t>(rank)]->loss_and_gradient(round, at, g);
  };
  const auto together = [&](Rank /*rank*/, Round round, std::span<const float> at,
                            std::span<float> g) {
    std::fill(g.begin(), g.end(), 0.0F);
    for (const auto& task : tasks) {
      loss += task->loss_and_gradient(round, at, share);
      host_ops().axpy(1 / static_cast<float>(tasks.size()), share, g);
    }
  };
  const Status status =
      driver.run(stream.rounds(), central ? GradientFunction(together) : GradientFunction(alone));
  const double plays = static_cast<double>(stream.rounds()) * stream.nodes();
  std::uint64_t bytes = 0;
  for (const auto& [edge, traffic] : driver.traffic()) {
    bytes += traffic.bytes;
  }
  double mass = 1;
  for (std::size_t node = 0; node < driver.size(); ++node) {
    if (const auto* push_sum = dynamic_cast<const PushSum*>(&driver.node(node))) {
      mass = std::min(mass, push_sum->mass());
    }
  }
  const bool finite = status.ok() && std::isfinite(loss);
  return {.loss = finite ? loss / plays : std::numeric_limits<double>::infinity(),
          .bytes = static_cast<double>(bytes) / plays,
          .mass = mass};
}

std::shared_ptr<const Topology> in_turns(const Topology& trust, Round parts) {
  std::vector<std::vector<WeightedEdge>> rounds(parts);
  std::vector<std::vector<double>> self(parts);
  for (Round round = 0; round < parts; ++round) {
    for (Rank node = 0; node < trust.nodes(); ++node) {
      const auto trusted = trust.out_edges(node, 0);
      std::vector<Rank> told;
      for (std::size_t k = round; k < trusted.size(); k += parts) {
        told.push_back(trusted[k].peer);
      }
      const double share = 1 / (1 + static_cast<double>(told.size()));
      for (const Rank peer : told) {
        rounds[round].push_back({node, peer, share});
      }
      self[round].push_back(share);
    }
  }
  return std::make_shared<const Topology>(trust.name() + ", in turns", trust.nodes(),
                                          std::move(rounds), std::move(self));
}

std::shared_ptr<const Topology> evened(const Topology& trust) {
  constexpr int kRounds = 5000;
  const auto n = static_cast<std::size_t>(trust.nodes());
  std::vector<double> mass(n, 1);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> next = mass;
    for (std::size_t from = 0; from < n; ++from) {
      for (const Edge& edge : trust.out_edges(static_cast<Rank>(from), 0)) {
        const double given = static_cast<double>(edge.weight) * mass[from];
        next[from] -= given;
        next[static_cast<std::size_t>(edge.peer)] += given;
      }
    }
    mass = std::move(next);
  }
  const double most = *std::max_element(mass.begin(), mass.end());
  std::vector<WeightedEdge> edges;
  std::vector<double> self(n, 1);
  for (std::size_t from = 0; from < n; ++from) {
    for (const Edge& edge : trust.out_edges(static_cast<Rank>(from), 0)) {
      const double share = static_cast<double>(edge.weight) * mass[from] / most;
      edges.push_back({static_cast<Rank>(from), edge.peer, share});
      self[from] -= share;
    }
  }
  return std::make_shared<const Topology>(trust.name() + ", evened", trust.nodes(),
                                          std::vector<std::vector<WeightedEdge>>{std::move(edges)},
                                          std::vector<std::vector<double>>{std::move(self)});
}

std::shared_ptr<const Topology> isolated(int nodes) {
  return std::make_shared<const Topology>("isolated", nodes,
                                          std::vector<std::vector<WeightedEdge>>(1));
}

}  // namespace sotto::bench

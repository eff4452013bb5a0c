// Threads that play the nodes of a job, for tests.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/transport.h>
#include <sotto/trainers/optimizer.h>

#include "optim/cluster.h"

namespace sotto::test {

/// Runs `node` for every rank at once; their statuses in rank order.
inline std::vector<Status> play(int nodes, const std::function<Status(Rank)>& node) {
  std::vector<Status> statuses(static_cast<std::size_t>(nodes));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < nodes; ++rank) {
    threads.emplace_back([&, rank] { statuses[static_cast<std::size_t>(rank)] = node(rank); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return statuses;
}

/// Options of `nodes` nodes that meet in this process.
inline OptimizerOptions options_for(int nodes, std::shared_ptr<Store> store) {
  OptimizerOptions options;
  options.transport = "inproc";
  options.nodes = nodes;
  options.store = std::move(store);
  options.step_rule.learning_rate = 0.05;
  options.seed = 1;
  return options;
}

/// Chooses an algorithm, with the step rule that it insists on and an early freeze.
inline void choose(OptimizerOptions& options, const AlgorithmInfo& info) {
  options.algorithm = spec_of({.algorithm = std::string(info.name)});
  options.step_rule = fitting(options.step_rule, info);
}

/// Writes the gradient of node `rank` in `round` at `x`.
using NodeGradient =
    std::function<void(Rank, Round, std::span<const float> x, std::span<float> gradient)>;

/// One node: `rounds` steps from `x`, then finish.
inline Status train(OptimizerOptions options, Rank rank, Round rounds,
                    const NodeGradient& gradient_of, std::vector<float>& x) {
  options.rank = rank;
  Optimizer optimizer(options, x);
  std::vector<float> gradient(x.size());
  while (optimizer.round() < rounds) {
    if (Status status = optimizer.begin_step(); !status.ok()) {
      return status;
    }
    gradient_of(rank, optimizer.round(), optimizer.parameters(), gradient);
    if (Status status = optimizer.step(gradient); !status.ok()) {
      return status;
    }
  }
  return optimizer.finish();
}

/// This build has the transport.
inline bool available(std::string_view name) {
  for (const TransportInfo& info : transports()) {
    if (info.name == name) {
      return info.available;
    }
  }
  return false;
}

}  // namespace sotto::test

// A program on every node of a job, in all drivers, for tests: the models that come of it, and what
// was carried.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/comm/stores.h>
#include <sotto/comm/transport.h>
#include <sotto/groups/program.h>
#include <sotto/sim/lockstep.h>
#include <sotto/sim/simulator.h>
#include <sotto/trainers/driver.h>
#include <sotto/trainers/node_transport.h>

#include "trainers/nodes.h"

namespace sotto::test {

/// A job whose nodes run one program.
struct ProgramJob {
  int nodes = 1;
  std::string grid = "all=1";
  std::size_t dimension = 1;  ///< parameters of a node
  Round rounds = 2;
  std::uint64_t seed = 1;
  BuildProgram build;
  /// Wraps or replaces a node's algorithm; empty: a ProgramAlgorithm.
  std::function<std::unique_ptr<Algorithm>(const ProgramSetup&)> make = {};
  double flops_per_second = 0;  ///< in the simulator
};

/// What came of a job.
struct ProgramRun {
  std::vector<std::vector<float>> models;
  LockstepDriver::Traffic traffic;
  std::vector<Status> statuses;
  SimulationReport report = {};  ///< of the simulator

  bool ok() const {
    return std::all_of(statuses.begin(), statuses.end(),
                       [](const Status& status) { return status.ok(); });
  }
};

/// The drivers that this build has: lock step in two ways, virtual time, and the transports;
/// "one thread" is inproc without overlap.
inline std::vector<std::string> drivers() {
  std::vector<std::string> all = {"eager", "late", "simulator", "inproc", "one thread"};
  for (const char* socket : {"gloo", "zmq"}) {
    if (available(socket)) {
      all.emplace_back(socket);
    }
  }
  return all;
}

/// Elements of N(0, 1), of a node and a round.
inline void normal_input(std::uint64_t seed, Rank rank, Round round, std::span<float> g) {
  RandomStream stream({.seed = seed, .rank = rank, .round = round, .purpose = Purpose::test});
  for (float& value : g) {
    value = static_cast<float>(stream.normal());
  }
}

class ProgramRunner {
 public:
  explicit ProgramRunner(ProgramJob job, GradientFunction input = {})
      : job_(std::move(job)), input_(std::move(input)) {
    if (!input_) {
      input_ = [seed = job_.seed](Rank rank, Round round, std::span<const float> /*x*/,
                                  std::span<float> g) { normal_input(seed, rank, round, g); };
    }
    run_.models.assign(static_cast<std::size_t>(job_.nodes), std::vector<float>(job_.dimension));
    run_.statuses.resize(static_cast<std::size_t>(job_.nodes));
  }

  /// Runs the job in a driver of drivers(). Once.
  ProgramRun run(std::string_view driver) {
    if (driver == "eager" || driver == "late") {
      lockstep(driver == "eager" ? Delivery::eager : Delivery::late);
    } else if (driver == "simulator") {
      simulator();
    } else {
      transport(driver);
    }
    return std::move(run_);
  }

  std::span<float> parameters(Rank rank) { return run_.models[static_cast<std::size_t>(rank)]; }
  std::unique_ptr<Algorithm> algorithm(Rank rank) {
    const ProgramSetup setup = {.rank = rank,
                                .nodes = job_.nodes,
                                .grid = job_.grid,
                                .parameters = run_.models[static_cast<std::size_t>(rank)],
                                .seed = job_.seed,
                                .run_id = 77};
    return job_.make ? job_.make(setup) : std::make_unique<ProgramAlgorithm>(setup, job_.build);
  }

 private:
  void lockstep(Delivery delivery) {
    LockstepDriver driver(delivery);
    for (Rank rank = 0; rank < job_.nodes; ++rank) {
      driver.add(algorithm(rank));
    }
    run_.statuses.front() = driver.run(job_.rounds, input_);
    run_.traffic = driver.traffic();
  }

  void simulator() {
    std::vector<std::unique_ptr<Algorithm>> algorithms;
    for (Rank rank = 0; rank < job_.nodes; ++rank) {
      algorithms.push_back(algorithm(rank));
    }
    SimulatorOptions options;
    options.rounds = job_.rounds;
    options.nodes[0].compute.seconds = 0.01;
    options.nodes[0].flops_per_second = job_.flops_per_second;
    SimulatorHooks hooks;
    hooks.trace = [this](const TraceEntry& entry) {
      if (entry.kind == TraceEntry::Kind::sent) {
        EdgeTraffic& edge = run_.traffic[{entry.node, entry.peer}];
        ++edge.frames;
        edge.bytes += entry.bytes;
      }
    };
    const Platform platform = make_star(job_.nodes, 1e6, 5'000'000);
    Simulator simulator(platform, options, std::move(algorithms), input_, std::move(hooks));
    run_.report = simulator.run();
    for (std::size_t i = 0; i < run_.statuses.size(); ++i) {
      run_.statuses[i] = run_.report.nodes[i].status;
    }
  }

  void transport(std::string_view name) {
    const std::shared_ptr<Store> store = make_memory_store();
    std::vector<std::vector<LinkTraffic>> traffic(static_cast<std::size_t>(job_.nodes));
    run_.statuses = play(job_.nodes, [&](Rank rank) {
      return node(name, store, rank, traffic[static_cast<std::size_t>(rank)]);
    });
    for (const auto& of_node : traffic) {
      for (const LinkTraffic& link : of_node) {
        run_.traffic[{link.from, link.to}] = {link.frames, link.bytes};
      }
    }
  }

  Status node(std::string_view name, const std::shared_ptr<Store>& store, Rank rank,
              std::vector<LinkTraffic>& traffic) {
    const auto runs = algorithm(rank);
    TransportOptions options = transport_options(runs->peers(), rank, job_.nodes);
    options.run_id = 77;
    options.store = store;
    const bool overlap = name != "one thread";
    auto transport = make_transport(overlap ? name : "inproc", options);
    if (!transport) {
      return transport.status();
    }
    Driver driver(*runs, **transport, {.rank = rank, .overlap = overlap});
    std::vector<float> gradient(job_.dimension);
    Status status;
    for (Round round = 0; status.ok() && round < job_.rounds; ++round) {
      status = driver.begin_round();
      if (status.ok()) {
        input_(rank, round, runs->parameters(), gradient);
        status = driver.gradient_ready(gradient);
      }
    }
    if (status.ok()) {
      status = driver.drain();
    }
    traffic = driver.traffic();
    return status;
  }

  ProgramJob job_;
  GradientFunction input_;
  ProgramRun run_;
};

/// A program of stages that are given, with whatever they work on.
class ListProgram final : public Program {
 public:
  std::span<const ProgramStage> stages() const override { return list; }

  std::vector<ProgramStage> list;
  std::vector<std::unique_ptr<Collective>> collectives;
  std::vector<float> v;
};

}  // namespace sotto::test

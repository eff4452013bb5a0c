// Drives the algorithm objects of a whole job through virtual time: the very objects that run over
// a real network, on a declared platform instead.
//
// A node alternates between gradient and exchange exactly as trainers/driver.h does, with its
// overlap; frames travel as messages of network/network.h. Events have one order, (time, sequence),
// and gradients are a function of (node, round, model), so that neither results nor trace depend on
// the number of worker threads.
//
// Real gradients: give `gradient`. Timing only: leave it out, and give light stand-ins for the
// algorithms (timing_job.h).
//
// Mistakes throw Error from the constructor; whatever happens to the simulated nodes is in the
// result. Thread safety: one caller's thread; `gradient` is called from several at once, for
// different nodes, and not any more once run() has returned. It must not throw: from a worker
// thread that ends the process (std::terminate). Ownership: owns the algorithms; parameters are
// the caller's, as is the platform, which the constructor alone looks at.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sotto/optim/algorithm.h>
#include <sotto/sim/gradient_function.h>
#include <sotto/sim/network/platform.h>
#include <sotto/sim/simulation_report.h>
#include <sotto/sim/simulator_options.h>
#include <sotto/sim/time.h>

namespace sotto {

/// One line of the trace.
struct TraceEntry {
  /// The kind of entry.
  enum class Kind : std::uint32_t {
    computed,   ///< a gradient is taken
    sent,       ///< bytes to peer
    delivered,  ///< bytes from peer
    finished,   ///< a round is over; bytes: its number
    ended,      ///< the node has ended; bytes: 1 with a fault
  };
  SimTime time = 0;
  Kind kind = Kind::computed;
  Rank node = 0;
  Rank peer = -1;
  std::uint64_t bytes = 0;
};

/// The activity of a node's thread, or its reason to wait; the four of NodeReport.
enum class Phase : std::uint8_t { compute, codec, wire, idle };

/// Functions by which a caller may watch. Called in the order of the trace from the thread of
/// run().
struct SimulatorHooks {
  /// A node's algorithm has something to tell (Algorithm::take_warnings), at the end of a round.
  /// Not asked where no gradients are taken.
  std::function<void(Rank node, const std::string& text)> warning;
  /// A node has finished `round`, counted from 0, and its parameters are those of the next, until
  /// model_changes says that they change.
  std::function<void(Rank node, Round round, SimTime time)> round_finished;
  /// A node's parameters are about to change, for the first time since it finished a round.
  std::function<void(Rank node)> model_changes;
  /// The last node that still runs has finished `round`. Others may be further already: to have all
  /// models as of a round, keep them as they change. False ends the simulation.
  std::function<bool(Round round, SimTime time)> round_finished_by_all;
  std::function<void(const TraceEntry&)> trace;
  /// A node has been in `phase` from `from` to `until`. A node's stretches follow each other
  /// without gaps from its start to its end, though neighbours may be of the same phase; their
  /// lengths add up to those of its report.
  std::function<void(Rank node, Phase phase, SimTime from, SimTime until)> phase;
};

class Simulator {
 public:
  /// A simulation of algorithms[i] at host i. Without `gradient`, no gradient is taken and frames
  /// carry no bytes: timing only.
  Simulator(const Platform& platform, SimulatorOptions options,
            std::vector<std::unique_ptr<Algorithm>> algorithms, GradientFunction gradient = {},
            SimulatorHooks hooks = {});
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  /// Runs until every node has ended: done, left, crashed or with a fault. A node that nothing
  /// will ever wake, as one suspended for good, ends with Fault::deadline. Once.
  SimulationReport run();

  /// A node's algorithm, after the run.
  const Algorithm& node(std::size_t rank) const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace sotto

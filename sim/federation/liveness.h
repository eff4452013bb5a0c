// Whether every site gets on, and finds its neighbours again after a disturbance, in time.
//
// Two sites are *in touch* when each is up for the other, and each knows the other's incarnation.
// That is asked of every pair whose processes run, list each other, and have a way open in both
// directions at its usual speed. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/fault_plan.h>
#include <sotto/sim/time.h>

#include "process.h"
#include "wires.h"

namespace sotto::federation {

class Liveness {
 public:
  /// Messages have about so many bytes.
  Liveness(const FaultPlan& plan, std::size_t message_bytes);

  /// Something happened to a site: its time to recover begins.
  void disturb(Rank site, SimTime now) { disturbed_[static_cast<std::size_t>(site)] = now; }
  /// Looks at the sites' present processes, null where there is none. `contested` says of which
  /// sites a replaced process runs: it takes channels away until it is told. Who waits for too
  /// long, and for what.
  std::optional<std::pair<Rank, std::string>> look(SimTime now,
                                                   std::span<const Process* const> processes,
                                                   std::vector<char> contested, const Wires& wires);
  /// A process that was replaced ends once it can hear so from most of its neighbours.
  std::optional<std::pair<Rank, std::string>> look_at_replaced(
      SimTime now, Process& process, std::span<const Process* const> processes,
      const Wires& wires) const;
  /// From a disturbance of either until the two were in touch again.
  SimTime worst_recovery() const { return worst_recovery_; }
  /// What anybody may wait for something that must come.
  SimTime bound() const { return bound_; }

 private:
  using Trouble = std::optional<std::pair<Rank, std::string>>;

  struct Pair {
    SimTime possible_since = kNever;
    SimTime asked_since = kNever;  ///< of a recovery under way
  };
  struct Way {
    federated::Sequence applied = 0;
    SimTime since = 0;
  };

  Trouble look_at(SimTime now, const Process& process) const;
  Trouble look_at(SimTime now, const Process& a, const Process& b, const Wires& wires);
  Trouble look_at_stream(SimTime now, const Process& from, const Process& to);

  bool contested(Rank site) const { return contested_[static_cast<std::size_t>(site)] != 0; }

  std::size_t sites_;
  SimTime bound_;
  SimTime found_after_;
  std::vector<SimTime> disturbed_;
  std::vector<char> contested_;
  std::vector<Pair> pairs_;
  std::vector<Way> ways_;
  SimTime worst_recovery_ = 0;
};

}  // namespace sotto::federation

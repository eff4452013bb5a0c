// What must hold of every site after every event: mass, streams, incarnations, durability, copies,
// memory. Looks at sites from outside, through what they say of themselves and what they send. The
// accounts of mass are in mass_audit.h.
//
// One thread at a time. The first thing found wrong is kept.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/simulated/simulated_sites.h>

#include "first_violation.h"
#include "mass_audit.h"
#include "process.h"

namespace sotto::sites {

class Audit {
 public:
  Audit(const FaultPlan& plan, std::size_t dimension);
  Audit(const Audit&) = delete;  // the accounts' violations are kept here
  Audit& operator=(const Audit&) = delete;

  /// Something that happens from here on is `during`; violations carry it.
  void begin_event(SimTime time, Rank site, const char* during) {
    violation_.begin_event(time, site, during);
  }

  // What a process did.
  /// It was made, and has loaded its disk's state if it has one.
  void began(Process& process);
  /// Heard of a channel or a message, or was asked whether it is ready.
  void heard(Process& process);
  void stepped(Process& process);
  void offered(Process& process);
  void collected(Process& process);
  /// Tells that the list of `process` was `listed`.
  void relisted(Process& process, const std::vector<Rank>& listed);
  /// Lets these bytes go.
  void releases(const Process& process, Rank to, std::span<const std::byte> message);
  /// A message has come: what is known of the parcel that it holds.
  std::optional<Handed> recognize(const Process& to, const Process& from,
                                  std::span<const std::byte> message) const;
  /// It is about to be handed over.
  void delivers(Process& to, const Incoming& incoming) const;
  /// Public copies of a site and of those that follow it.
  void compare_copies(const Process& followed, const Process& follower);
  /// All sites' accounts; `whole` says that no state was given up, so that nothing may be lost.
  void check_total(std::span<const MassAccount* const> accounts, bool whole) {
    mass_.check_total(accounts, whole);
  }

  void fail(std::string what) { violation_.fail(std::move(what)); }
  const std::optional<SimulatedSiteViolation>& violation() const { return violation_.found(); }
  /// Fills what it knows.
  void report(SimulatedSitesReport& report) const;

 private:
  /// The site as it was; from here on `process` has it as it is.
  static SaidState look(Process& process);
  void check_identity(const Process& process, const SaidState& before);
  void check_acquaintances(Process& process, const SaidState& before);
  void check_bounds(const Process& process);
  void check_loaded(const Process& process);

  const FaultPlan& plan_;
  std::size_t dimension_;
  FirstViolation violation_;
  MassAudit mass_;
  std::set<Incarnation> incarnations_;  ///< all that there were
  std::size_t most_pending_ = 0;
};

}  // namespace sotto::sites

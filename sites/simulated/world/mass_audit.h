// Keeps the accounts of mass of simulated sites, as an onlooker, and holds each site to its own:
// what it makes of parcels, takes in from them, mints and returns.
//
// All is called behind a look at the process (seen_site.h); `before` is what the site said of
// itself until then. One thread at a time. The plan and what takes violations outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/simulated/simulated_sites.h>

#include "first_violation.h"
#include "process.h"

namespace sotto::sites {

class MassAudit {
 public:
  MassAudit(const FaultPlan& plan, FirstViolation& violation);

  /// Whether parcels of these sites carry mass at all.
  bool has_mass() const { return has_mass_; }

  // What a process did.
  /// The process began without a state.
  void began_anew(Process& process);
  /// The process has loaded the state of its disk.
  void went_on(Process& process);
  /// Heard of a channel or a message, or was asked whether it is ready.
  void heard(Process& process, const SaidState& before);
  void stepped(const Process& process, const SaidState& before);
  void offered(Process& process, const SaidState& before);
  /// False when it applied a parcel that never came; its account is void then.
  bool collected(Process& process, const SaidState& before);
  /// The list of `process` was `listed`.
  void relisted(Process& process, const std::vector<Rank>& listed, const SaidState& before);

  /// All sites' accounts; `whole` says that no state was given up, so that nothing may be lost.
  void check_total(std::span<const MassAccount* const> accounts, bool whole);
  /// Fills what it knows.
  void report(SimulatedSitesReport& report) const;

 private:
  void renew(Process& process, const SaidState& before);
  void close_streams(Process& process, const SaidState& before);
  void write_off(Process& process, const std::vector<Rank>& listed,
                 const std::vector<PeerState>& peers);
  void take_handed(Process& process, const SaidState& before);
  void drop_arrivals(Process& process, const SaidState& before);
  double give_parcels(Process& process, std::size_t place, const PeerState& before);
  std::optional<double> take_parcels(Process& process, std::size_t place, const PeerState& before);
  double returned_since(const Process& process, const SaidState& before);
  void expect(const Process& process, double mass, const char* after);
  void balance(const Process& process);

  const FaultPlan& plan_;
  FirstViolation& violation_;
  bool has_mass_;
  StreamId last_stream_ = 0;
  std::uint64_t resets_ = 0;
  double worst_error_ = 0;
  double minted_ = 0;
  double lost_ = 0;
};

}  // namespace sotto::sites

// What must hold of every site after every event: mass, streams, incarnations, durability, copies,
// memory. Looks at sites from outside, through what they say of themselves and what they send.
//
// One thread at a time. The first thing found wrong is kept.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/simulated/simulated_sites.h>

#include "process.h"

namespace sotto::sites {

class Audit {
 public:
  /// Masses may differ by so much …
  static constexpr double kTolerance = 1e-9;
  static constexpr double kRounding = 1e-12;  ///< … and this part of what went in and out

  Audit(const FaultPlan& plan, std::size_t dimension);

  /// Something that happens from here on is `during`; violations carry it.
  void begin_event(SimTime time, Rank site, const char* during);

  // What a process did.
  /// It was made, and has loaded its disk's state if it has one.
  void began(Process& process);
  /// Heard of a channel or a message, or was asked whether it is ready.
  void heard(Process& process);
  void stepped(Process& process);
  void offered(Process& process);
  void collected(Process& process);
  /// Tells that the list of `process` was `before`.
  void relisted(Process& process, const std::vector<Rank>& before);
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
  void check_total(std::span<const MassAccount* const> accounts, bool whole);

  void fail(std::string what);
  const std::optional<SimulatedSiteViolation>& violation() const { return violation_; }
  /// Fills what it knows.
  void report(SimulatedSitesReport& report) const;

 private:
  struct Seen {
    SiteState state;
    std::vector<PeerState> peers;
  };

  /// The site as it was, and now.
  Seen look(Process& process);
  void check_identity(const Process& process, const Seen& before);
  void check_acquaintances(Process& process, const Seen& before);
  void drop_arrivals(Process& process, const Seen& before);
  void check_bounds(const Process& process);
  void check_loaded(const Process& process);
  void renew(Process& process, const Seen& before);
  void take_handed(Process& process, const Seen& before);
  void close_streams(Process& process, const Seen& before);
  void write_off(Process& process, const std::vector<Rank>& before,
                 const std::vector<PeerState>& peers);
  void expect_mass(const Process& process, double mass, const char* after);
  double returned_since(const Process& process, const Seen& before);
  void balance(const Process& process);
  PeerAccount& account_of(Process& process, std::size_t place) {
    return process.account.peers[static_cast<std::size_t>(process.listed[place])];
  }

  const FaultPlan& plan_;
  std::size_t dimension_;
  bool has_mass_;
  std::set<Incarnation> incarnations_;  ///< all that there were
  std::vector<Incarnation> present_;    ///< by site
  StreamId last_stream_ = 0;
  SimTime time_ = 0;
  Rank site_ = -1;
  const char* during_ = "";
  std::optional<SimulatedSiteViolation> violation_;
  std::uint64_t resets_ = 0;
  double worst_error_ = 0;
  double minted_ = 0;
  double lost_ = 0;
  std::size_t most_pending_ = 0;
};

}  // namespace sotto::sites

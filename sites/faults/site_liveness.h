// Whether every site gets on, and finds its neighbours again after a disturbance, in time: looked
// at from outside, on simulated sites (simulated_sites.h) and on real ones (bench/sitelab).
//
// Two sites are *in touch* when each is up for the other, and each knows the other's incarnation.
// That is asked of every pair whose processes run, list each other, and have a way open in both
// directions at its usual speed.
//
// Thread safety: one thread at a time. Ownership: what views name is the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/time.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/faults/fault_plan.h>
#include <sotto/topology/topology.h>

namespace sotto {

/// A site, as an onlooker sees its present process.
struct ObservedSite {
  Rank site = -1;
  bool running = false;  ///< whether it is there, and not stopped
  bool waits_for_model = false;
  SimTime moved = 0;                  ///< time when it last got on
  std::span<const Rank> listed = {};  ///< sites of its peers, by place
  const sites::SiteState* state = nullptr;
  std::span<const sites::PeerState> peers = {};  ///< states of its peers, by place
  const sites::Site* node =
      nullptr;  ///< site that says for whom it waits; null: it cannot be asked
};

/// What lies between sites.
class Ways {
 public:
  virtual ~Ways() = default;
  /// Messages pass from a to b and back.
  virtual bool open_both_ways(Rank a, Rank b) const = 0;
  /// It has not its usual speed, in one direction or both.
  virtual bool slowed(Rank a, Rank b) const = 0;
};

/// The peers of a site in either direction, in order.
std::vector<Rank> neighbours(const Topology& topology, Rank site);

/// The longest time that a site may wait for a message that must come, of about `message_bytes`
/// bytes: two silence time-outs, the patience, twice where sites lie, and some round trips.
SimTime recovery_bound(const FaultPlan& plan, std::size_t message_bytes);

/// Watches one run. One thread at a time.
class Liveness {
 public:
  /// For the sites of `plan`, each of which has `bound` to recover.
  Liveness(const FaultPlan& plan, SimTime bound);

  /// Something happened to a site: its time to recover begins.
  void disturb(Rank site, SimTime now) { disturbed_[static_cast<std::size_t>(site)] = now; }
  /// Looks at all sites, by number, and returns the first that waits for too long, and for what.
  /// `contested` says of which sites a replaced process runs: it takes channels away until it is
  /// told.
  std::optional<std::pair<Rank, std::string>> look(SimTime now, std::span<const ObservedSite> sites,
                                                   std::vector<char> contested, const Ways& ways);
  /// A process that was replaced ends once it can hear so from most of its neighbours, which it
  /// could not before `alone_until`.
  std::optional<std::pair<Rank, std::string>> look_at_replaced(SimTime now,
                                                               const ObservedSite& process,
                                                               SimTime& alone_until,
                                                               std::span<const ObservedSite> sites,
                                                               const Ways& ways) const;
  /// From a disturbance of either until the two were in touch again.
  SimTime worst_recovery() const { return worst_recovery_; }
  SimTime bound() const { return bound_; }

 private:
  using Trouble = std::optional<std::pair<Rank, std::string>>;

  struct Pair {
    SimTime possible_since = kNever;
    SimTime asked_since = kNever;  ///< beginning of a recovery under way
  };
  struct Way {
    sites::Sequence applied = 0;
    SimTime since = 0;
  };

  Trouble look_at(SimTime now, const ObservedSite& site) const;
  Trouble look_at(SimTime now, const ObservedSite& a, const ObservedSite& b, const Ways& ways);
  Trouble look_at_stream(SimTime now, const ObservedSite& from, const ObservedSite& to);

  bool contested(Rank site) const { return contested_[static_cast<std::size_t>(site)] != 0; }

  std::size_t sites_;
  SimTime bound_;
  bool sums_;  // in secret: a site that has met too few others has no masks, and sends nothing
  SimTime found_after_;
  std::vector<SimTime> disturbed_;
  std::vector<char> contested_;
  std::vector<char> lies_;  ///< whether a site lies, by site: nothing is promised to it
  std::vector<Pair> pairs_;
  std::vector<Way> ways_;
  SimTime worst_recovery_ = 0;
};

}  // namespace sotto

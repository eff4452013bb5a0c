// The sites of a run, the relays between them, and whether they get on. Starts and replaces
// processes; when, RealRun (real_run.h) and RealInjection (real_injection.h) say.
//
// One thread, which holds no other threads yet when the object is made: it forks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/faults/site_liveness.h>
#include <sotto/topology/topology.h>

#include "growth.h"
#include "real_site.h"
#include "real_sites.h"
#include "relays.h"

namespace sotto::sitelab {

class RealFleet {
 public:
  /// Makes the folders of all sites; the plan and the options must outlive it.
  RealFleet(const FaultPlan& plan, const RealOptions& options);

  RealSite& at(Rank site) { return *sites_[static_cast<std::size_t>(site)]; }
  const RealSite& at(Rank site) const { return *sites_[static_cast<std::size_t>(site)]; }
  std::size_t size() const { return sites_.size(); }
  Relays& relays() { return relays_; }
  const Relays& relays() const { return relays_; }
  /// The neighbours of a site in the plan's graph.
  std::vector<Rank> neighbours(Rank site) const;
  /// Whether the plan says so.
  bool lies(Rank site) const { return plan_.lie_of(site) != nullptr; }
  /// Whether any site has a process.
  bool any_runs() const;
  /// How many processes were started.
  std::uint64_t starts() const { return starts_; }

  /// Starts a process of a site that has none.
  void begin(Rank site, SimTime now);
  /// Lets a process that was stopped go on, the site's own or one that was replaced.
  void resume(Rank site, std::uint64_t process, SimTime now);
  /// Another process with the same key goes on from what is written, elsewhere; the old one keeps
  /// its folder and its address, as a machine does that was cut off. The new one is yet to begin.
  void take_over(Rank site, SimTime now);
  /// The exit statuses of processes that were replaced and have ended since, with their sites.
  std::vector<std::pair<Rank, int>> take_replaced_ends();
  /// Kills all processes that were replaced.
  void kill_replaced() { replaced_.clear(); }

  /// The peers that the site's list has now.
  const std::vector<Rank>& listed(Rank site) const {
    return listed_[static_cast<std::size_t>(site)];
  }
  /// The site's list has these peers from now on.
  void relist(Rank site, std::vector<Rank> listed);

  /// Something happened to the site: its time to recover begins.
  void disturb(Rank site, SimTime now);
  /// A site that waits for too long, and for what.
  std::optional<std::pair<Rank, std::string>> find_hang(SimTime now);
  const Liveness& liveness() const { return liveness_; }
  /// What each process takes of the machine.
  void take_footprints(SimTime now, Footprints& footprints) const;

 private:
  SiteHome make_home(Rank site, const std::string& name, const KeyPair& keys) const;
  void write_peers(Rank site);
  std::vector<std::string> words_of(Rank site) const;

  const FaultPlan& plan_;
  const RealOptions& options_;
  std::shared_ptr<const Topology> topology_;
  Relays relays_;
  Liveness liveness_;
  std::vector<std::unique_ptr<RealSite>> sites_;
  std::vector<std::vector<Rank>> listed_;  ///< by site
  std::vector<ReplacedProcess> replaced_;
  std::uint64_t starts_ = 0;
};

}  // namespace sotto::sitelab

// The sites of a run: their folders, the processes that run them, and the relays between them.
// Starts and replaces processes; when, RealRun says (real_run.h).
//
// One thread, which holds no other threads yet when the object is made: it forks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/file_descriptor.h>
#include <sotto/comm/trust/keys.h>
#include <sotto/console/child.h>
#include <sotto/sites/faults/fault_plan.h>
#include <sotto/topology/topology.h>

#include "growth.h"
#include "real_sites.h"
#include "relays.h"
#include "site_files.h"
#include "site_status.h"

namespace sotto::sitelab {

/// A folder, and where its process listens.
struct SiteHome {
  std::unique_ptr<SiteFiles> files;
  FileDescriptor port_holder;
  FileDescriptor monitor_holder;
  int port = 0;
  int monitor = 0;
};

/// A site; it outlives processes.
struct RealSite {
  SiteHome home;
  std::deque<std::string> logs;  ///< the logs of all its homes
  KeyPair keys = make_key_pair();
  std::map<Rank, int> ports;  ///< where it reaches others
  std::vector<Rank> listed;   ///< the peers that its list has now
  std::unique_ptr<console::Child> process;
  std::uint64_t number = 0;  ///< the number of its process in this run
  bool stopped = false;
  std::optional<SimTime> leaving;  ///< since
  SimTime began = 0;
  std::deque<SimTime> disturbed;

  StatusWatch watch;
  SiteStatus seen;
  SimTime moved = 0;

  /// Whether its monitor has answered for the process that runs it now.
  bool has_answered() const { return process && seen.process == number; }
};

/// A process whose site another one has taken over.
struct ReplacedProcess {
  Rank site = 0;
  SiteHome home;
  std::unique_ptr<console::Child> process;
  std::uint64_t number = 0;
  SimTime since = 0;   ///< it stands still
  bool holds = false;  ///< it went on before its channels were given up
};

class RealFleet {
 public:
  /// Makes the folders of all sites; the plan and the options must outlive it.
  RealFleet(const FaultPlan& plan, const RealOptions& options);

  RealSite& at(Rank site) { return *sites_[static_cast<std::size_t>(site)]; }
  const RealSite& at(Rank site) const { return *sites_[static_cast<std::size_t>(site)]; }
  std::size_t size() const { return sites_.size(); }
  std::deque<ReplacedProcess>& replaced() { return replaced_; }
  Relays& relays() { return relays_; }
  /// The neighbours of a site in the plan's graph.
  std::vector<Rank> neighbours(Rank site) const;
  /// Whether the plan says so.
  bool lies(Rank site) const { return plan_.lie_of(site) != nullptr; }
  /// Whether any site has a process.
  bool any_runs() const;
  std::uint64_t starts() const { return starts_; }

  /// Starts a process of a site that has none.
  void begin(Rank site, SimTime now);
  /// Kills it, and waits for its end.
  void kill(Rank site);
  void stop(Rank site);
  /// Lets a process that was stopped go on, the site's own or one that was replaced.
  void resume(Rank site, std::uint64_t process, SimTime now);
  /// Another process with the same key goes on from what is written, elsewhere; the old one keeps
  /// its folder and its address, as a machine does that was cut off. The new one is yet to begin.
  void take_over(Rank site, SimTime now);
  /// The site's list has these peers from now on.
  void relist(Rank site, std::vector<Rank> listed);
  /// What each process takes of the machine.
  void take_footprints(SimTime now, Footprints& footprints) const;

 private:
  SiteHome make_home(Rank site, const std::string& name);
  void write_peers(Rank site);
  std::vector<std::string> words_of(Rank site) const;

  const FaultPlan& plan_;
  const RealOptions& options_;
  std::shared_ptr<const Topology> topology_;
  Relays relays_;
  std::vector<std::unique_ptr<RealSite>> sites_;
  std::deque<ReplacedProcess> replaced_;
  std::uint64_t starts_ = 0;
};

}  // namespace sotto::sitelab

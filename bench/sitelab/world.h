// The world of real sites under faults (real_sites.h): their processes, what befalls them, and
// an onlooker. What sites/simulated/world/world.h does in virtual time.
//
// One thread. One run an object.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sotto/sites/simulated/fault_plan.h>
#include <sotto/sites/simulated/site_liveness.h>
#include <sotto/topology/topology.h>

#include "../child.h"
#include "real_sites.h"
#include "relays.h"
#include "site_files.h"
#include "site_process.h"

namespace sotto::sitelab {

class World {
 public:
  World(const FaultPlan& plan, const RealOptions& options);

  RealReport run();

 private:
  /// A folder, and where its process listens.
  struct Home {
    std::unique_ptr<SiteFiles> files;
    FileDescriptor port_holder;
    FileDescriptor monitor_holder;
    int port = 0;
    int monitor = 0;
    int watch = -1;  ///< of inotify, on its state
  };
  /// A site; it outlives processes.
  struct Slot {
    Home home;
    std::deque<std::string> logs;  ///< of all its homes
    KeyPair keys = make_key_pair();
    std::map<Rank, int> doors;  ///< where it reaches others
    std::vector<Rank> listed;   ///< as its list says now
    std::unique_ptr<bench::Child> process;
    std::uint64_t number = 0;  ///< of the process, in this run
    bool stopped = false;
    std::optional<SimTime> leaving;  ///< since
    SimTime began = 0;
    std::vector<std::size_t> armed;  ///< faults that wait for a round or a moment of it
    std::deque<SimTime> disturbed;

    StatusWatch watch;
    SiteStatus seen;
    SimTime moved = 0;
  };
  /// A process whose site another one has taken over.
  struct Replaced {
    Rank site = 0;
    Home home;
    std::unique_ptr<bench::Child> process;
    std::uint64_t number = 0;
    bool stopped = true;
    SimTime since = 0;   ///< it stands still
    bool holds = false;  ///< it went on before its channels were given up
  };
  /// A fault that happened, and ends.
  struct Active {
    std::size_t fault = 0;
    Rank site = 0;
    std::uint64_t process = 0;
    std::vector<Rank> peers = {};
    SimTime over = kNever;
  };
  /// A process that neighbours in touch with it are to miss.
  struct Gone {
    Rank site = 0;
    SimTime at = 0;
    bool stopped = false;
    std::vector<Rank> witnesses;
  };

  // Sites (world.cc).
  Home make_home(Rank site, const std::string& name);
  void write_peers(Rank site);
  void begin_process(Rank site);
  void look_after_processes();
  void ended(Rank site, int status);
  void look_at_sites();
  void look_for_hangs();
  void take_footprints();
  void look_at_states();
  bool all_done() const;
  void step();
  RealProgress progress() const;

  // What befalls them (strikes.cc).
  void arm(std::size_t fault);
  void strike(std::size_t fault, Rank site);
  bool happens(const PlannedFault& fault, Rank site, Active& active);
  bool kills(const PlannedFault& fault, Rank site);
  bool stops(const PlannedFault& fault, Rank site);
  void take_over(Rank site);
  void strike_at(Rank site, FaultMoment moment);
  void relist(Rank site, std::vector<Rank> listed);
  /// Tells that the state of `site` is about to be removed or replaced.
  void forget_state(Rank site);
  void over(const Active& active);
  void resume(const Active& active);
  void expect_missed(Rank site, bool stopped);
  std::vector<Rank> others(const PlannedFault& fault, Rank site) const;
  void disturb(Rank site);

  // The end (end.cc).
  bool steady() const;
  void end_all();
  void audit();
  void read_logs();
  void measure(const Gone& gone, const std::vector<std::vector<LogEntry>>& logs);

  void fail(Rank site, std::string during, std::string what);
  SimTime now() const;
  Slot& slot(Rank site) { return *slots_[static_cast<std::size_t>(site)]; }
  const Slot& slot(Rank site) const { return *slots_[static_cast<std::size_t>(site)]; }

  const FaultPlan& plan_;
  const RealOptions& options_;
  std::vector<PlannedFault> faults_;
  std::size_t next_fault_ = 0;
  std::shared_ptr<const Topology> topology_;
  Relays relays_;
  sites::Liveness liveness_;
  FileDescriptor inotify_;
  const std::chrono::steady_clock::time_point start_;
  double unix_start_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::deque<Replaced> replaced_;
  std::vector<Active> active_;
  std::vector<Gone> gone_;
  double returned_before_ = 0;         ///< by all such states
  std::vector<double> minted_before_;  ///< by site: of states that are gone
  Footprints footprints_;
  SimTime last_over_ = 0;
  SimTime sampled_ = 0;
  SimTime looked_ = 0;
  RealReport report_;
};

}  // namespace sotto::sitelab

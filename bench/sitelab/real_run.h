// A run of real sites under faults (real_sites.h): their processes, the faults that are injected
// into them, and what is seen of them from outside. sites/simulated/world/world.h does the same in
// virtual time.
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

#include <sotto/console/child.h>
#include <sotto/sites/simulated/fault_plan.h>
#include <sotto/sites/simulated/fault_schedule.h>
#include <sotto/sites/simulated/site_liveness.h>
#include <sotto/topology/topology.h>

#include "real_sites.h"
#include "relays.h"
#include "site_files.h"
#include "site_process.h"

namespace sotto::sitelab {

class RealRun final : private sites::FaultTarget {
 public:
  RealRun(const FaultPlan& plan, const RealOptions& options);

  RealReport run();

 private:
  /// A folder, and where its process listens.
  struct Home {
    std::unique_ptr<SiteFiles> files;
    FileDescriptor port_holder;
    FileDescriptor monitor_holder;
    int port = 0;
    int monitor = 0;
    int watch = -1;  ///< the inotify watch on its state
  };
  /// A site; it outlives processes.
  struct Slot {
    Home home;
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
  };
  /// A process whose site another one has taken over.
  struct Replaced {
    Rank site = 0;
    Home home;
    std::unique_ptr<console::Child> process;
    std::uint64_t number = 0;
    bool stopped = true;
    SimTime since = 0;   ///< it stands still
    bool holds = false;  ///< it went on before its channels were given up
  };
  /// When a fault is over, by FaultSchedule's number.
  struct End {
    std::size_t number = 0;
    SimTime at = 0;
  };
  /// When a site begins again.
  struct Begin {
    Rank site = 0;
    SimTime at = 0;
  };
  /// A process that neighbours in touch with it are to miss.
  struct Gone {
    Rank site = 0;
    SimTime at = 0;
    bool stopped = false;
    std::vector<Rank> witnesses;
  };

  // Sites (real_run.cc).
  Home make_home(Rank site, const std::string& name);
  void write_peers(Rank site);
  void begin_process(Rank site) override;
  void look_after_processes();
  void ended(Rank site, int status);
  void look_at_sites();
  void look_for_hangs();
  std::vector<std::string> words_of(Rank site) const;
  bool lies(Rank site) const { return plan_.lie_of(site) != nullptr; }
  void take_footprints();
  void look_at_states();
  bool all_done() const;
  void step();
  RealProgress progress() const;

  // The faults of the plan (injection.cc).
  void inject_and_end();
  void reach(Rank site, FaultMoment moment);
  void take_over(Rank site);
  /// Tells that the state of `site` is about to be removed or replaced.
  void forget_state(Rank site);
  void expect_missed(Rank site, bool stopped);
  std::optional<std::uint64_t> process_of(Rank site) const override;
  bool kill(const PlannedFault& fault, Rank site) override;
  bool stop(const PlannedFault& fault, Rank site) override;
  void resume(Rank site, std::uint64_t process) override;
  bool leave(Rank site) override;
  bool set_clock(Rank /*site*/) override { return false; }  // check_real refuses it
  void bring_back(Rank site) override;
  bool reset(Rank site, Rank peer, std::uint64_t bytes) override {
    return relays_.reset(site, peer, bytes);
  }
  void block(Rank from, Rank to) override { relays_.block(from, to); }
  void unblock(Rank from, Rank to) override { relays_.unblock(from, to); }
  void set_link(Rank from, Rank to, const std::optional<LinkSpec>& link) override {
    relays_.set_link(from, to, link);
  }
  const std::vector<Rank>& listed(Rank site) const override { return slot(site).listed; }
  void relist(Rank site, std::vector<Rank> listed) override;
  void on_injected(const PlannedFault& fault, Rank site, const std::vector<Rank>& peers) override;
  void on_over(const PlannedFault& /*fault*/, Rank /*site*/) override {}
  void disturb(Rank site) override;
  void end_after(SimTime lasting, std::size_t number) override;

  // The end (end.cc).
  bool steady() const;
  void end_all();
  void ask_for_metrics();
  void judge(const std::vector<DurableSite>& durable);
  void audit();
  void read_logs();
  void measure(const Gone& gone, const std::vector<std::vector<LogEntry>>& logs);

  void fail(Rank site, std::string during, std::string what);
  SimTime now() const;
  Slot& slot(Rank site) { return *slots_[static_cast<std::size_t>(site)]; }
  const Slot& slot(Rank site) const { return *slots_[static_cast<std::size_t>(site)]; }

  const FaultPlan& plan_;
  const RealOptions& options_;
  sites::FaultSchedule faults_;
  std::size_t next_fault_ = 0;
  std::shared_ptr<const Topology> topology_;
  Relays relays_;
  sites::Liveness liveness_;
  FileDescriptor inotify_;
  const std::chrono::steady_clock::time_point start_;
  double unix_start_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::deque<Replaced> replaced_;
  std::vector<End> ends_;
  std::vector<Begin> begins_;
  std::vector<Gone> gone_;
  double returned_before_ = 0;         ///< what all such states gave back
  std::vector<double> minted_before_;  ///< what states that are gone had minted, by site
  Footprints footprints_;
  Naming naming_;
  SimTime last_over_ = 0;
  SimTime sampled_ = 0;
  SimTime looked_ = 0;
  RealReport report_;
};

}  // namespace sotto::sitelab

// A site of a run: its folder, the process that runs it now, and what that process's monitor says.
//
// One thread, beside the one that asks the monitor.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/file_descriptor.h>
#include <sotto/base/ids.h>
#include <sotto/comm/trust/keys.h>
#include <sotto/console/child.h>
#include <sotto/sim/time.h>

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

/// A process that a site no longer has, with the home that it keeps.
struct ReplacedProcess {
  Rank site = 0;
  SiteHome home;
  std::unique_ptr<console::Child> process;
  std::uint64_t number = 0;
  SimTime since = 0;   ///< it stands still
  bool holds = false;  ///< it went on before its channels were given up
};

/// How a process of a site has ended.
struct ProcessEnd {
  int status = 0;
  std::optional<SimTime> leaving;  ///< since when it had been told to leave
};

/// A site; it outlives its processes, of which it has one at a time or none.
class RealSite {
 public:
  RealSite(const KeyPair& keys, SiteHome home);

  const KeyPair& keys() const { return keys_; }
  SiteFiles& files() { return *home_.files; }
  const SiteFiles& files() const { return *home_.files; }
  int port() const { return home_.port; }
  int monitor() const { return home_.monitor; }
  /// The logs of all homes that it has had, oldest first.
  const std::vector<std::string>& logs() const { return logs_; }

  bool runs() const { return process_ != nullptr; }
  /// Whether it has a process that is neither stopped nor told to leave.
  bool at_work() const { return runs() && !stopped_ && !leaving_; }
  bool stopped() const { return stopped_; }
  /// Since when its process has been told to leave.
  std::optional<SimTime> leaving() const { return leaving_; }
  /// The number of its present process, or of its last one; 0: it has had none.
  std::uint64_t number() const { return number_; }
  /// When its present process began, or its last one.
  SimTime began() const { return began_; }

  /// Starts these words as its process, to which it gives the number; it must have none. The
  /// monitor is asked from now on where there is one.
  void begin(const std::vector<std::string>& words, std::uint64_t number, bool has_monitor,
             SimTime now);
  // The following are for a site that has a process.
  /// The process's number on this machine.
  pid_t pid() const { return process_->number(); }
  /// SIGKILL; waits for the end.
  void kill();
  /// SIGSTOP.
  void stop();
  /// SIGCONT.
  void resume(SimTime now);
  /// SIGTERM.
  void leave(SimTime now);
  /// Has it leave, stopped or not; one whose monitor has not answered yet is killed.
  void end(SimTime now);
  /// The process goes on as one that was replaced, with its home; the site has none, and `fresh`
  /// for its home.
  ReplacedProcess move(Rank site, SiteHome fresh, SimTime now);
  /// The end of its process, once that has ended; then the site has none.
  std::optional<ProcessEnd> take_end();

  /// Takes what the monitor of its process has said last. False: nothing yet.
  bool look(SimTime now);
  /// How it stood at the last look, and as new before its process has answered.
  const SiteStatus& seen() const { return seen_; }
  /// Whether its monitor has answered for the process that runs it now.
  bool has_answered() const { return runs() && seen_.process == number_; }
  /// When it was last seen to get on.
  SimTime moved() const { return moved_; }

  void disturb(SimTime now) { disturbed_.push_back(now); }
  /// When something happened to it.
  const std::deque<SimTime>& disturbed() const { return disturbed_; }

 private:
  void forget_process();

  KeyPair keys_;
  SiteHome home_;
  std::vector<std::string> logs_;
  std::unique_ptr<console::Child> process_;
  std::uint64_t number_ = 0;
  bool stopped_ = false;
  std::optional<SimTime> leaving_;
  SimTime began_ = 0;
  std::deque<SimTime> disturbed_;
  StatusWatch watch_;
  SiteStatus seen_;
  SimTime moved_ = 0;
};

}  // namespace sotto::sitelab

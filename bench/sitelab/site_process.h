// One process of `sotto faults --real`, and how its site stands as its own monitor tells it.
//
// Thread safety: one thread at a time; StatusWatch asks from a thread of its own.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/core/site.h>

namespace sotto::cli {

/// The name of a site of a plan, and back; −1: no such name.
std::string real_site_name(Rank site);
Rank real_site_rank(std::string_view name);

/// What a process takes of the machine.
struct Footprint {
  double resident_bytes = 0;
  double descriptors = 0;
};

/// `sotto node SITE.toml`, killed if it still runs in the end, or when this process dies.
class SiteProcess {
 public:
  /// Its log, as JSON, goes to the end of `log`, its result to `result`. Throws
  /// std::runtime_error. From the thread that lives as long as the process may.
  SiteProcess(const std::string& site_file, const std::string& log, const std::string& result);
  ~SiteProcess();
  SiteProcess(const SiteProcess&) = delete;
  SiteProcess& operator=(const SiteProcess&) = delete;

  pid_t number() const { return pid_; }
  void send(int signal) const;
  /// Its exit status, or 128 + the signal that was its end; none while it runs.
  std::optional<int> ended();
  /// None when it has ended.
  std::optional<Footprint> footprint() const;

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

/// How a site stood when its monitor was asked last.
struct SiteStatus {
  std::uint64_t process = 0;  ///< of which it was asked
  bool waits_for_model = true;
  sites::SiteState state;
  std::vector<Rank> listed;
  std::vector<sites::PeerState> peers;
};

/// What `/status` says. Throws std::runtime_error for what no site says.
SiteStatus parse_site_status(const std::string& text);

/// Asks one site again and again.
class StatusWatch {
 public:
  StatusWatch();
  ~StatusWatch();
  StatusWatch(const StatusWatch&) = delete;
  StatusWatch& operator=(const StatusWatch&) = delete;

  /// From now on the monitor at this port is asked, of a process that the caller numbers; 0:
  /// nobody.
  void follow(int port, std::uint64_t process);
  /// The last answer of the present process; none before its first.
  std::optional<SiteStatus> latest() const;

 private:
  void ask();

  mutable std::mutex mutex_;
  std::condition_variable change_;
  int port_ = 0;
  std::uint64_t process_ = 0;
  bool over_ = false;
  std::optional<SiteStatus> latest_;
  std::thread thread_;
};

}  // namespace sotto::cli

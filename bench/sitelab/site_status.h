// How a site stands, as the monitor of its process tells it.
//
// Thread safety: one thread at a time; StatusWatch asks from a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sites/core/site.h>

namespace sotto::sitelab {

/// How a site stood when its monitor was asked last.
struct SiteStatus {
  std::uint64_t process = 0;  ///< the number of the process that was asked
  bool waits_for_model = true;
  sites::SiteState state;
  std::vector<Rank> listed;
  std::vector<sites::PeerState> peers;
  std::vector<std::string> reasons;  ///< of each peer: what is to be asked about it
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

}  // namespace sotto::sitelab

// Ends the process of a site that was told to stop and is still in the middle of something after a
// while: what counts is written, and what is not written has not left.
//
// Thread safety: any thread may call it. Owns a thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "event_log.h"

namespace sotto::cli {

class SiteExit {
 public:
  static constexpr std::chrono::seconds kUsual{5};
  /// Time from when the process was told to hasten.
  static constexpr std::chrono::seconds kInHaste{2};

  /// What the process was asked for.
  struct Site {
    bool keeps_state = true;         ///< whether it saves as it ends
    bool asked_for_results = false;  ///< whether results are due: ended without them, it has failed
    std::chrono::seconds within = kUsual;  ///< time from when it was told to stop
  };

  /// Begins to watch for the signal.
  SiteExit(EventLog& log, const Site& site);
  ~SiteExit();
  SiteExit(const SiteExit&) = delete;
  SiteExit& operator=(const SiteExit&) = delete;

  /// Writes once that the site was told to stop, if it was: before what it says because of that.
  void tell_of_stop();

 private:
  static constexpr std::chrono::milliseconds kLook{50};
  using Clock = std::chrono::steady_clock;

  /// Ends the process if the site has not ended in time.
  void watch();

  EventLog& log_;
  const Site site_;
  std::atomic<bool> told_{false};
  std::mutex mutex_;
  std::condition_variable change_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace sotto::cli

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

  /// `asked_for_results`: they are not written where the process is ended, so that the run has
  /// failed. A site may take `within` from when it was told to stop.
  SiteExit(EventLog& log, bool asked_for_results, std::chrono::seconds within = kUsual);
  ~SiteExit();
  SiteExit(const SiteExit&) = delete;
  SiteExit& operator=(const SiteExit&) = delete;

  /// Writes once that the site was told to stop, if it was: before what it says because of that.
  void tell_of_stop();

 private:
  static constexpr std::chrono::milliseconds kLook{50};

  EventLog& log_;
  std::atomic<bool> told_{false};
  std::mutex mutex_;
  std::condition_variable change_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace sotto::cli

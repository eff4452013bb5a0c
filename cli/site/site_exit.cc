#include "site_exit.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include <sotto/base/start_threads.h>
#include <sotto/console/command.h>
#include <sotto/console/signals.h>

namespace sotto::cli {

SiteExit::SiteExit(EventLog& log, const Site& site)
    : log_(log), site_(site), thread_(start_thread("the end of a site", [this] { watch(); })) {}

SiteExit::~SiteExit() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  change_.notify_one();
  thread_.join();
}

void SiteExit::tell_of_stop() {
  if (console::stop_requested() && !told_.exchange(true)) {
    log_.write({SiteEvent::Level::info, SiteEvent::Kind::stopping,
                site_.keeps_state ? "was told to stop: ends what it is at, and saves"
                                  : "was told to stop: ends what it is at; it keeps no state"});
  }
}

void SiteExit::watch() {
  std::unique_lock lock(mutex_);
  while (!over_ && !console::stop_requested()) {
    change_.wait_for(lock, kLook);
  }
  tell_of_stop();
  auto end = Clock::now() + site_.within;
  bool hurried = false;
  while (!over_ && Clock::now() < end) {
    change_.wait_for(lock, kLook);
    if (!hurried && console::haste_requested()) {
      hurried = true;
      end = std::min<Clock::time_point>(end, Clock::now() + kInHaste);
    }
  }
  if (!over_) {
    log_.write({SiteEvent::Level::warning, SiteEvent::Kind::ended,
                fmt::format("was told to stop in the middle of a long step, which is dropped: {}; "
                            "no result is written",
                            site_.keeps_state ? "the site goes on from the state before it"
                                              : "it keeps no state")});
    std::_Exit(site_.asked_for_results ? console::kFailed : console::kDone);
  }
}

}  // namespace sotto::cli

#include "site_exit.h"

#include <cstdlib>

#include <sotto/base/start_threads.h>
#include <sotto/console/command.h>
#include <sotto/console/signals.h>

namespace sotto::cli {

SiteExit::SiteExit(EventLog& log, bool asked_for_results, std::chrono::seconds within)
    : log_(log), thread_(start_thread("the end of a site", [this, &log, asked_for_results, within] {
        std::unique_lock lock(mutex_);
        while (!over_ && !console::stop_requested()) {
          change_.wait_for(lock, kLook);
        }
        tell_of_stop();
        if (!change_.wait_for(lock, within, [this] { return over_; })) {
          log.write({SiteEvent::Level::warning, SiteEvent::Kind::ended,
                     "was told to stop in the middle of a long step, which is dropped: the site "
                     "goes on from the state before it; no result is written"});
          std::_Exit(asked_for_results ? console::kFailed : console::kDone);
        }
      })) {}

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
                "was told to stop: ends what it is at, and saves"});
  }
}

}  // namespace sotto::cli

#include "real_site.h"

#include <csignal>
#include <utility>

namespace sotto::sitelab {

RealSite::RealSite(const KeyPair& keys, SiteHome home)
    : keys_(keys), home_(std::move(home)), logs_{home_.files->log()} {}

void RealSite::begin(const std::vector<std::string>& words, std::uint64_t number, bool has_monitor,
                     SimTime now) {
  process_ = std::make_unique<console::Child>(
      words,
      // Ctrl-C is for this process, which ends its sites in good order.
      console::ChildSetup{.log = home_.files->log(), .own_group = true});
  number_ = number;
  began_ = moved_ = now;
  seen_ = {};
  watch_.follow(has_monitor ? home_.monitor : 0, has_monitor ? number : 0);
}

void RealSite::forget_process() {
  process_.reset();
  stopped_ = false;
  leaving_.reset();
  watch_.follow(0, 0);
}

void RealSite::kill() {
  process_->signal(SIGKILL);
  forget_process();  // waits for its end
}

void RealSite::stop() {
  process_->signal(SIGSTOP);
  stopped_ = true;
}

void RealSite::resume(SimTime now) {
  process_->signal(SIGCONT);
  stopped_ = false;
  moved_ = now;
}

void RealSite::leave(SimTime now) {
  process_->signal(SIGTERM);
  leaving_ = now;
}

void RealSite::end(SimTime now) {
  if (!has_answered()) {
    kill();
    return;
  }
  process_->signal(SIGCONT);
  stopped_ = false;
  process_->signal(SIGTERM);
  leaving_ = leaving_.value_or(now);
}

ReplacedProcess RealSite::move(Rank site, SiteHome fresh, SimTime now) {
  ReplacedProcess old = {.site = site,
                         .home = std::exchange(home_, std::move(fresh)),
                         .process = std::move(process_),
                         .number = number_,
                         .since = now};
  forget_process();
  logs_.push_back(home_.files->log());
  return old;
}

std::optional<ProcessEnd> RealSite::take_end() {
  const auto code = process_ ? process_->ended() : std::nullopt;
  if (!code) {
    return std::nullopt;
  }
  const ProcessEnd end = {.status = *code, .leaving = leaving_};
  forget_process();
  return end;
}

bool RealSite::look(SimTime now) {
  auto latest = watch_.latest();
  if (!runs() || !latest || latest->process != number_) {
    return false;
  }
  if (seen_.process != number_ || latest->state.round != seen_.state.round ||
      latest->waits_for_model != seen_.waits_for_model) {
    moved_ = now;
  }
  seen_ = std::move(*latest);
  return true;
}

}  // namespace sotto::sitelab

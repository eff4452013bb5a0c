#include <sotto/sites/elastic/elastic_wait_watch.h>

#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace sotto {

bool ElasticWaitWatch::due(Time now) const {
  const Time lasted = now - since_;
  switch (kind_) {
    case ElasticWait::Kind::quorum:
    case ElasticWait::Kind::nodes:
      return lasted >= kTellAfter && (!told_ || now - *told_ >= kTellAgain);
    case ElasticWait::Kind::nobody:
    case ElasticWait::Kind::key:
    case ElasticWait::Kind::admission:
      return lasted >= kTellAdmissionAfter && (!told_ || now - *told_ >= kTellAgain);
    case ElasticWait::Kind::newcomer:
      return lasted >= kTellAfter && !told_ &&
             (!newcomer_told_ || now - *newcomer_told_ >= kNewcomerAgain);
    default:
      return false;  // everyday
  }
}

std::optional<SiteEvent> ElasticWaitWatch::follow(const ElasticWait& wait, Time now) {
  if (wait.kind != kind_) {
    kind_ = wait.kind;
    since_ = now;
    told_.reset();
  }
  const bool goes_on = kind_ == ElasticWait::Kind::none || kind_ == ElasticWait::Kind::others;
  if (goes_on && open_) {
    const double seconds = std::chrono::duration<double>(now - open_since_).count();
    return SiteEvent{.level = SiteEvent::Level::info,
                     .kind = SiteEvent::Kind::run_goes_on,
                     .text = fmt::format("goes on, {:.0f} s after it had begun to wait ({})",
                                         seconds, name_of(*std::exchange(open_, std::nullopt))),
                     .figures = {{"waited_s", seconds}}};
  }
  if (!due(now)) {
    return std::nullopt;
  }
  told_ = now;
  open_since_ = open_ ? open_since_ : since_;
  open_ = kind_;
  const bool usual = kind_ == ElasticWait::Kind::newcomer;
  if (usual) {
    newcomer_told_ = now;
  }
  const double seconds = std::chrono::duration<double>(now - since_).count();
  return SiteEvent{.level = usual ? SiteEvent::Level::info : SiteEvent::Level::warning,
                   .kind = SiteEvent::Kind::run_waits,
                   .text = fmt::format("stands still since {:.0f} s: {}", seconds, words_of(wait)),
                   .figures = {{"waited_s", seconds},
                               {"members", std::uint64_t{wait.members}},
                               {"members_lost", std::uint64_t{wait.lost.size()}}}};
}

}  // namespace sotto

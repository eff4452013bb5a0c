// When an operator is to be told that a node of an all-reduce whose nodes come and go waits, and
// that it goes on.
//
// Pure; one thread at a time.
#pragma once

#include <chrono>
#include <optional>

#include <sotto/sites/elastic/elastic_wait.h>
#include <sotto/sites/nodes/report/site_event.h>

namespace sotto {

/// Says which waits last so long that an operator is told, and when these are over.
class ElasticWaitWatch {
 public:
  using Time = std::chrono::milliseconds;  ///< from any beginning that its owner chooses

  /// Shorter waits are everyday: an epoch's end, a newcomer's last steps.
  static constexpr Time kTellAfter{2'000};
  /// A newcomer waits for others, and then for an epoch's end, as a matter of course.
  static constexpr Time kTellAdmissionAfter{30'000};
  static constexpr Time kTellAgain{300'000};     ///< while a wait lasts
  static constexpr Time kNewcomerAgain{60'000};  ///< between two waits for newcomers

  /// The node waits so by now. The event that is to be told; none: nothing has changed.
  std::optional<SiteEvent> follow(const ElasticWait& wait, Time now);
  /// When the present wait began.
  Time since() const { return since_; }

 private:
  bool due(Time now) const;

  ElasticWait::Kind kind_ = ElasticWait::Kind::none;
  Time since_{0};                            ///< when it began
  std::optional<Time> told_{};               ///< when it was told of last; none: not yet
  std::optional<ElasticWait::Kind> open_{};  ///< a wait whose end is still to be told
  Time open_since_{0};                       ///< when that began
  std::optional<Time> newcomer_told_{};      ///< when a wait for a newcomer was told of last
};

}  // namespace sotto

// A stop before the first round: nodes that are all told may still meet and agree on an end, but
// nobody waits for one that is not there.
//
// Thread safety: any thread may call it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include <sotto/comm/deadline.h>
#include <sotto/trainers/optimizer_options.h>

namespace sotto::internal {

class EarlyStop {
 public:
  /// No wait is ended by `stop` any more: a round has begun, or the optimizer is gone.
  void end() { over_ = true; }

  /// What ends the waits of an optimizer: `interrupted` always, and `stop`, of the same options,
  /// while `early` has not ended. Empty where the options have neither.
  static StopRequest request(const OptimizerOptions& options,
                             const std::shared_ptr<EarlyStop>& early) {
    if (options.stop == nullptr && !options.interrupted) {
      return {};
    }
    return [stop = options.stop, interrupted = options.interrupted, early] {
      return (interrupted && interrupted()) || early->ends_wait(stop);
    };
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// How much longer nodes that were stopped may still meet: each has time to tell the store why it
  /// leaves.
  static constexpr std::chrono::milliseconds kMeeting{700};
  static_assert(kMeeting > after_stop::kStore);

  bool ends_wait(const std::atomic<bool>* stop) {
    if (over_ || stop == nullptr || !*stop) {
      return false;
    }
    const auto now = Clock::now().time_since_epoch().count();
    Clock::rep none = 0;
    seen_.compare_exchange_strong(none, now);
    return now - seen_ >= Clock::duration(kMeeting).count();
  }

  std::atomic<bool> over_{false};
  std::atomic<Clock::rep> seen_{0};  // when the stop was seen first; 0: not yet
};

}  // namespace sotto::internal

// What every function of sotto.h goes through: exceptions become a status and a message of this
// thread. Thread-safe.
#pragma once

#include <atomic>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/base/status.h>

#include "sotto.h"

namespace sotto::c {

/// How C and Python programs write settings: `weighting="shares"`.
class ArgumentSpelling final : public Spelling {
 public:
  std::string mention(std::string_view setting, std::string_view value) const override;
};

/// Keeps the message for sotto_last_error and returns `status`.
sotto_status fail(sotto_status status, std::string_view message);
/// Keeps a fault for sotto_last_error and returns its code; SOTTO_OK for no fault.
sotto_status outcome(const Status& status);
inline sotto_status outcome(sotto_status status) { return status; }
/// The exception that is being handled.
sotto_status caught() noexcept;

/// Runs `body`, which returns a sotto_status or throws.
template <typename Body>
sotto_status guarded(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    return caught();
  }
}

/// Throws Error if `pointer` is null.
void need(const void* pointer, std::string_view what);

/// `count` elements at `data`, which may be null for none. Throws Error.
template <typename T>
std::span<T> span_at(T* data, std::size_t count, std::string_view what) {
  if (count > 0) {
    need(data, what);
  }
  return {data, count};
}

/// A model of the caller's. Throws Error for an empty one, and one that is too long.
std::span<float> model_at(float* parameters, std::size_t count);

/// A copy of `bytes`, and of a zero byte behind them, that sotto_free frees. Throws.
char* copy_for_caller(std::string_view bytes);
/// Gives a copy of `text` to the caller, which frees it.
sotto_status give(std::string_view text, char** out);

/// One thread at a time: throws Error while another one holds `busy`.
class Turn {
 public:
  Turn(std::atomic_flag& busy, std::string_view what);
  ~Turn() { busy_.clear(std::memory_order_release); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::atomic_flag& busy_;
};

// Below, `Held` is what stands behind a handle: `kKind` is what errors call it, and the flag `busy`
// is set while a thread is inside a call.

/// Runs `body`, which returns a sotto_status or a Status, or throws, in this thread's turn.
template <typename Held, typename Body>
sotto_status in_turn(Held* held, const Body& body) noexcept {
  return guarded([&] {
    need(held, Held::kKind);
    const Turn turn(held->busy, Held::kKind);
    return outcome(body());
  });
}

/// Runs `action`, which neither throws nor takes a lock: for what may be called while another
/// thread is inside a call, and by a signal's handler.
template <typename Held, typename Action>
sotto_status at_any_time(Held* held, const Action& action) noexcept {
  if (held == nullptr) {
    return guarded([&] {
      need(held, Held::kKind);
      return SOTTO_OK;
    });
  }
  action();
  return SOTTO_OK;
}

}  // namespace sotto::c

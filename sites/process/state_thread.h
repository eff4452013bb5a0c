// A thread that writes states beside the training, one at a time, and what became of the latest
// write. Not for users.
//
// Thread safety: one thread at a time. Ownership: what a job refers to must outlive the object,
// whose destructor waits for its end.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include <sotto/base/job_thread.h>
#include <sotto/base/status.h>

namespace sotto {

class StateThread {
 public:
  /// No step waits for more memory than this that is new to the process, in bytes.
  static constexpr std::size_t kQuick = std::size_t{16} << 20;

  /// Whether no job is under way.
  bool idle();
  /// What the latest write came to; requires that no job is under way.
  const Status& written() const { return written_; }
  /// Begins a job that writes; requires that no job is under way. What it throws is Fault::io.
  void write(std::function<Status()> job);
  /// Begins a job that makes room for a later write.
  void prepare(const std::function<void()>& job);
  /// Waits until no job is under way, and calls `meanwhile` again and again until then.
  void settle(const std::function<void()>& meanwhile);

 private:
  bool working_ = false;  ///< whether the thread has a job, or its end is unseen
  Status written_;        ///< result of the latest write; its thread's while `working_`
  std::optional<JobThread> thread_;
};

}  // namespace sotto

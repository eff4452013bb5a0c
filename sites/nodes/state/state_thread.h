// A thread that writes states beside the training, one at a time, and what became of the latest
// write. Not for users.
//
// Thread safety: one thread at a time. Ownership: what a job refers to must outlive the object,
// whose destructor waits for its end.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include <sotto/base/job_thread.h>
#include <sotto/base/status.h>

namespace sotto {

class StateThread {
 public:
  /// Whether no job is under way.
  bool idle();
  /// What the latest write came to; requires that no job is under way.
  const Status& written() const { return written_; }
  /// Begins a job that writes; requires that no job is under way. What it throws is Fault::io.
  void write(std::function<Status()> job);
  /// Whether `memory` holds so many bytes. Gets them at once where they are few, and else by a job,
  /// as memory that is new to the process comes page by page. What was in it may be lost; the job
  /// uses it until it has ended. Requires that no job is under way.
  bool make_room(std::vector<std::byte>& memory, std::size_t bytes);
  /// Gets them at once, unless `memory` holds them.
  static void make_room_at_once(std::vector<std::byte>& memory, std::size_t bytes);
  /// Waits until no job is under way, and calls `meanwhile` again and again until then.
  void settle(const std::function<void()>& meanwhile);

 private:
  bool working_ = false;  ///< whether the thread has a job, or its end is unseen
  Status written_;        ///< result of the latest write; its thread's while `working_`
  std::optional<JobThread> thread_;
};

}  // namespace sotto

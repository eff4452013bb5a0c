// Starts threads, all of them or none, and says in one line what would do where the system gives
// fewer.
//
// Thread safety: all functions may be called from any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include <sotto/base/error.h>

namespace sotto {

/// Starts `count` threads; number k runs body(k). All or none: where the system gives fewer, `end`
/// is called, which must make `body` return, the threads that were started are joined, and Error is
/// thrown, which names the limit that is the likely reason. `purpose` names the threads in the
/// message, as "nodes".
std::vector<std::thread> start_threads(std::size_t count, std::string_view purpose,
                                       const std::function<void(std::size_t)>& body,
                                       const std::function<void()>& end);

/// Starts one thread that a node needs whatever its settings, which runs `body`. Throws Shortage
/// where the system gives none.
std::thread start_thread(std::string_view purpose, const std::function<void()>& body);

/// Runs body(k) for k = 0 … count − 1, each on a thread of its own, and returns when all are done.
/// No body begins before all threads have started. If the system refuses a thread, Error is thrown
/// and no body has run. `body` must not throw.
void run_side_by_side(std::size_t count, std::string_view purpose,
                      const std::function<void(std::size_t)>& body);

/// While it lives, the functions above find that the system gives `starts` more threads to the
/// whole process, and then no more. For tests; one at a time.
class ThreadShortage {
 public:
  /// Grants `starts` more threads, from now on.
  explicit ThreadShortage(std::size_t starts);
  ~ThreadShortage();
  ThreadShortage(const ThreadShortage&) = delete;
  ThreadShortage& operator=(const ThreadShortage&) = delete;
};

}  // namespace sotto

// The forked nodes of a local job, as their parent looks after them (launch/local_processes.h). One
// thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/trainers/launch/local_processes.h>

namespace sotto::internal {

/// Forks a child for each node and hears how each ends: by a report over a pipe, by its exit status
/// or by a signal.
class ChildProcesses {
 public:
  /// `node_main` must outlive this.
  explicit ChildProcesses(const NodeMain& node_main) : node_main_(node_main) {}
  /// Kills all children that still run: none outlives the parent's interest.
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  /// Throws std::runtime_error where the system gives fewer processes.
  void fork_all(int nodes);
  /// Waits at most `ms` for a child to say something or to end.
  void look(int ms);
  /// Sends `signal` to all children that still run.
  void end_all(int signal) const;
  std::size_t running() const { return running_ranks().size(); }
  bool any_failed() const;
  /// Whether some child found the request wrong; the message.
  std::optional<std::string> wrong_request() const;
  /// The fault that explains the others, so far.
  Status verdict() const;

 private:
  struct Child {
    pid_t pid = -1;
    int report = -1;  ///< read end of the pipe; −1 once the child has been reaped
    std::string text = {};
    int wait_status = 0;

    bool running() const { return report >= 0; }
    bool failed() const { return !running() && (wait_status != 0 || !text.empty()); }
  };

  static void read_report(Child& child);
  std::vector<std::size_t> running_ranks() const;

  const NodeMain& node_main_;
  std::vector<Child> children_;
};

}  // namespace sotto::internal

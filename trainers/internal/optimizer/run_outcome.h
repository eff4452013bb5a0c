// How a node's run stands: it goes on; a fault has ended it, which all nodes are told; or all nodes
// have come to its end. While it goes on a gradient may have been refused, in whose round another
// one may follow.
//
// One thread at a time. Whatever it is given must outlive it.
#pragma once

#include <exception>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>

namespace sotto::internal {

class RunAgreement;
class RunReporter;

class RunOutcome {
 public:
  RunOutcome(RunAgreement& agreement, RunReporter& reporter, Rank rank)
      : agreement_(agreement), reporter_(reporter), rank_(rank) {}
  RunOutcome(const RunOutcome&) = delete;
  RunOutcome& operator=(const RunOutcome&) = delete;

  /// The fault that has ended the run; OK while it goes on, and after a common end.
  const Status& status() const { return status_; }
  /// All nodes have come to the end.
  bool finished() const { return finished_; }
  /// `status` in this node's name.
  Status named(const Status& status) const;

  /// Ends the run with `fault`, of which all nodes are told, or with that of another node which it
  /// follows from; the first one stands. An OK ends nothing. Returns status().
  Status ended_by(Status fault);
  /// Ends it with the program's own reason, in this node's name unless that names a node; an OK, or
  /// one after the common end, ends nothing. Returns status().
  Status give_up(const Status& cause);
  /// Whether `status` refuses a gradient of a run that goes on: the round stays open then, and
  /// unless another gradient follows, all nodes are told of it as this one leaves.
  bool keep_open(const Status& status);
  /// A gradient was taken, after those that were refused.
  void gradient_taken() { refused_ = Status(); }
  /// All nodes have come to the end.
  void finish();
  /// This node leaves. Tells all nodes why, unless the run has ended or the program simply stops.
  void leave();

 private:
  RunAgreement& agreement_;
  RunReporter& reporter_;
  const Rank rank_;
  Status status_;
  Status refused_;  ///< reason why the last gradient was refused; OK when it was taken
  bool finished_ = false;
  const int exceptions_ = std::uncaught_exceptions();  ///< number of exceptions at the start
};

}  // namespace sotto::internal

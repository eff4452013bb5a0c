// What the observer of a program's own loop is told of all nodes: each leaves in the store how it
// stands, and node 0 takes what is there. Nobody waits for anybody, so that what node 0 knows of
// another node may be a report old. One thread a node.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <sotto/comm/store.h>
#include <sotto/trainers/observer.h>
#include <sotto/trainers/result.h>

#include "postbox.h"

namespace sotto::internal {

class Reporter {
 public:
  /// Both must outlive this object.
  Reporter(Observer& observer, Store& store, Rank rank, int nodes);
  /// Tells how the run has ended, when it has begun.
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  bool begun() const { return begun_; }
  /// Fault::io when the observer cannot.
  Status begin(const RunStart& start, const std::vector<std::string>& warnings);
  void round_done(Round done);
  /// What came up on the way.
  void warn(const std::string& text);
  /// This node stands so; node 0 tells of all nodes, and completes `point` by what they sent.
  /// Unless `evaluated` it has no loss.
  void report(const NodeStanding& mine, HistoryPoint point, bool evaluated);
  /// Leaves how this node stands at the end, which it has not come to yet.
  void leave(const NodeStanding& mine, std::chrono::milliseconds patience);
  /// All nodes have left that and come to the end.
  void finish(const NodeStanding& mine, HistoryPoint point);
  /// The fault that has ended the run, for all that is known so far.
  void set_fault(const Status& fault) { end_ = fault; }

 private:
  /// Asks for what the others have left.
  void hear(const NodeStanding& mine);

  Observer& observer_;
  Store& store_;
  const Rank rank_;
  const int nodes_;
  bool begun_ = false;
  bool deaf_ = false;  ///< the store has failed, or the run is over: what is known stays
  std::size_t dimension_ = 0;
  std::vector<NodeStanding> known_;  ///< sorted by node
  std::optional<Postbox> postbox_;   ///< of a node that is not node 0 and is to tell
  Status end_{Fault::unexpected, "the program left before the end of the run"};
};

}  // namespace sotto::internal

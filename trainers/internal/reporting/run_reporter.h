// What the observer of a program's own loop is told: the phases of this node, and now and then how
// all nodes stand. Each node leaves in the store how it stands, and node 0 takes what has come.
// Nobody waits for anybody, so that what node 0 knows of another node may be a report old.
//
// One thread at a time. The observer and the store must outlive it.
#pragma once

#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <sotto/comm/store.h>
#include <sotto/trainers/observer.h>
#include <sotto/trainers/optimizer.h>
#include <sotto/trainers/result.h>

#include "../optimizer/compression_watch.h"
#include "phases.h"
#include "stopwatch.h"
#include "value_publisher.h"

namespace sotto::internal {

/// Figures of the model at a report; NaN: not known.
struct Findings {
  double loss = std::numeric_limits<double>::quiet_NaN();
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  double consensus_distance = std::numeric_limits<double>::quiet_NaN();
  bool evaluated = false;  ///< the caller has found loss and accuracy
};

class RunReporter {
 public:
  /// Without options.observer nobody is told anything, and without options.report_every phases
  /// alone are.
  RunReporter(const OptimizerOptions& options, Store& store, CompressionWatch compression);
  /// Tells how the run has ended, when it has begun.
  ~RunReporter();
  RunReporter(const RunReporter&) = delete;
  RunReporter& operator=(const RunReporter&) = delete;

  RoundClock& clock() { return clock_; }
  const RoundClock& clock() const { return clock_; }
  /// What compression leaves out, measured shortly before each report.
  CompressionWatch& compression() { return compression_; }
  const CompressionWatch& compression() const { return compression_; }
  /// Seconds since the run began.
  double wall_s() const { return wall_.seconds(); }

  /// Reports are wanted, and the run has not begun.
  bool to_begin() const { return every_ > 0 && !begun_; }
  /// True if a report is due when `done` rounds are done.
  bool due(Round done) const { return every_ > 0 && done % every_ == 0; }
  /// Node 0 reports what the caller finds of its model.
  bool takes_evaluations() const { return every_ > 0 && rank_ == 0; }

  // Without an observer, begin and report are not called, and the other functions do nothing.

  /// Fault::io when the observer cannot.
  Status begin(const RunStart& start, const std::vector<std::string>& warnings);
  void round_done(Round done);
  /// Passes a warning on that arose after `begin`.
  void warn(const std::string& text);
  /// Reports how this node stands; node 0 tells of all nodes, as far as it has heard of them.
  void report(const NodeStanding& mine, const Findings& found);
  /// Leaves how this node stands at the end, which it has not come to yet.
  void leave(const NodeStanding& mine, std::chrono::milliseconds patience);
  /// All nodes have left that and come to the end.
  void finish(const NodeStanding& mine);
  /// The fault that has ended the run, for all that is known so far.
  void set_fault(const Status& fault) { end_ = fault; }

 private:
  /// Asks for what the others have left.
  void hear(const NodeStanding& mine);
  /// Has compression measured before the next report.
  void measure_next(Round done) { compression_.measure_before((done / every_ + 1) * every_); }

  Observer* const observer_;
  Store& store_;
  const Rank rank_;
  const int nodes_;
  const Round every_;  ///< rounds from one report to the next; 0: none are wanted
  RoundClock clock_;
  CompressionWatch compression_;
  Stopwatch wall_;
  bool begun_ = false;
  bool deaf_ = false;  ///< the store has failed, or the run is over: what is known stays
  std::size_t dimension_ = 0;
  std::vector<NodeStanding> known_;  ///< sorted by node
  /// Publisher of a node that reports to node 0; none on node 0.
  std::optional<ValuePublisher> publisher_;
  Status end_{Fault::unexpected, "the program left before the end of the run"};
};

}  // namespace sotto::internal

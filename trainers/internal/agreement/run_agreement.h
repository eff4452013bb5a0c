// What the nodes of a run have to agree on apart from single frames: that they start from the same,
// when the run ends and why, and what happens where one is out of data before others.
//
// Faults name the node. Thread safety: `wait_fault` and `given_up` from any thread, everything
// else on the node's own. The session must outlive it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/session.h>
#include <sotto/trainers/meetings/store_collectives.h>
#include <sotto/trainers/optimizer.h>

#include "meeting_register.h"
#include "run_news.h"
#include "stop_agreement.h"
#include "uneven_data.h"

namespace sotto::internal {

/// State that all nodes must have in common before the first round.
struct StartingPoint {
  std::string agreement;  ///< settings that nodes must agree on, as text
  Round done = 0;         ///< rounds done
  /// Digest of the initial parameters; "" after a load, when nodes differ.
  std::string parameters{};
};

/// A fault that refuses a gradient and leaves its round open for another one.
inline bool is_refusal(const Status& status) {
  return status.fault() == Fault::non_finite || status.fault() == Fault::budget;
}

class RunAgreement {
 public:
  RunAgreement(Session& session, const OptimizerOptions& options);
  RunAgreement(const RunAgreement&) = delete;
  RunAgreement& operator=(const RunAgreement&) = delete;

  StoreCollectives& collectives() { return collectives_; }
  MeetingRegister& meetings() { return meetings_; }
  StopAgreement& stop() { return stop_; }

  /// Enters the session, compares what this node starts from with node 0's, and waits until all
  /// nodes have done so. `start` is asked within the session, so that its fault is told to all.
  Status agree(const std::function<Result<StartingPoint>()>& start);
  /// This node's share of the sum of all nodes' weights (share_of_weight).
  Result<float> share(double weight);
  /// True once all nodes can be told something.
  bool entered() const { return entered_; }

  /// Call it before a round, with the rounds that are done: Fault::ended where all end here.
  Status begin_round(Round done);
  /// This node has a gradient of this round.
  Status enter_round(Round round);
  /// Checks a wait for these nodes: a fault when the wait cannot end.
  Status wait_fault(std::span<const Rank> peers);
  /// Checks a wait for frames: the reason why some node gave up, in that node's name. (Waits in
  /// the store look for it themselves.)
  Status given_up();
  /// A fault when a wait for this node in the store cannot end because a neighbour is lost. On the
  /// node's own thread.
  Status lost_neighbour(Rank awaited);
  /// Makes lost_neighbour ask `lost` (Driver::lost_neighbour).
  void watch_connections(std::function<Status(Rank)> lost) { lost_ = std::move(lost); }

  /// The next action of a node that is out of data, after `done` rounds: a round with a zero
  /// gradient, unless begin_round says that all end; the mean; or nothing more. The first call says
  /// that it is out of data.
  Result<UnevenData::Next> next_without_data(Round done);

  /// Tells all nodes the fault that ends this one. Returns why another node has ended where `fault`
  /// follows from that, else `fault`.
  Status give_up(const Status& fault);
  /// Waits until all nodes have come to the end. After meetings().come(MeetingPlace::finish).
  Status end() { return collectives_.barrier("end"); }

 private:
  Status named(const Status& status) const;
  Status compare(const StartingPoint& mine);

  Session& session_;
  const Rank rank_;
  const int nodes_;
  const std::chrono::milliseconds timeout_;
  const Join join_;
  RunNews news_;
  StoreCollectives collectives_;
  MeetingRegister meetings_;
  StopAgreement stop_;
  UnevenData data_;
  std::function<Status(Rank)> lost_;
  /// Time for which a lost neighbour may still have done its part.
  std::optional<Deadline> lost_until_;
  bool entered_ = false;
  bool out_of_data_ = false;
  bool ended_ = false;  ///< all nodes know the last round, and this one has come to it
};

}  // namespace sotto::internal

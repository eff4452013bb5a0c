// What the nodes of a run have to agree on while it goes on, apart from the models: where they
// meet, when the run ends, and what happens where one is out of data before others.
//
// Thread safety: `look` from any thread, everything else on the node's own. The store must outlive
// it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <span>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/store.h>
#include <sotto/trainers/meeting.h>
#include <sotto/trainers/optimizer.h>

#include "run_news.h"
#include "stop_agreement.h"
#include "uneven_data.h"
#include "whereabouts.h"

namespace sotto::internal {

class Consensus {
 public:
  Consensus(Store& store, const OptimizerOptions& options);
  Consensus(const Consensus&) = delete;
  Consensus& operator=(const Consensus&) = delete;

  Meetings& meetings() { return meetings_; }
  Whereabouts& whereabouts() { return whereabouts_; }
  StopAgreement& stop() { return stop_; }

  /// Before a round, when so many are done: Fault::ended where all end here.
  Status begin_round(Round done);
  /// This node has a gradient of this round.
  Status enter_round(Round round);
  /// For whoever waits for these nodes: a fault when the wait cannot end.
  Status look(std::span<const Rank> peers);
  /// For whoever waits for their frames: why some node gave up, too, which meetings see themselves.
  Status look_in_round(std::span<const Rank> peers);
  /// A fault when a wait for this node in the store cannot end because a neighbour is lost. On the
  /// node's own thread.
  Status look_for_lost(Rank awaited);
  /// Asks `lost` for that (Driver::look_for_lost).
  void watch_connections(std::function<Status(Rank)> lost) { lost_ = std::move(lost); }

  /// What a node that is out of data does next, when so many rounds are done: a round with a zero
  /// gradient, unless begin_round says that all end; the mean; or nothing more. The first call says
  /// that it is out of data.
  Result<UnevenData::Next> next_without_data(Round done);

 private:
  const Join join_;
  RunNews news_;
  Meetings meetings_;
  Whereabouts whereabouts_;
  StopAgreement stop_;
  UnevenData data_;
  std::function<Status(Rank)> lost_;
  std::optional<Deadline>
      lost_until_;  ///< how long a neighbour that is lost may have done its part
  bool out_of_data_ = false;
  bool ended_ = false;  ///< all nodes know the last round, and this one has come to it
};

}  // namespace sotto::internal

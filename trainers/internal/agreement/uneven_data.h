// What a node does that is out of data before others: it goes along with zero gradients, in the
// rounds and to the meetings that some node still comes to, until all are out of data.
//
// As torch.distributed.algorithms.join has it. The number of rounds is that of the node with the
// most data, whatever the timing: a node without data begins a round only once one with data has.
// Once some node is out of data, those that are not say before each gradient which round it is of.
//
// Thread safety: `round_fault` from any thread, everything else on the node's own. Whatever it is
// given must outlive it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/store.h>
#include <sotto/trainers/meetings/fault_notice.h>

#include "meeting_register.h"
#include "run_news.h"

namespace sotto::internal {

class UnevenData {
 public:
  /// `stop` ends waits.
  UnevenData(Store& store, RunNews& news, Rank rank, int nodes, std::chrono::milliseconds timeout,
             StopRequest stop)
      : store_(store),
        news_(news),
        rank_(rank),
        nodes_(nodes),
        timeout_(timeout),
        stop_(std::move(stop)) {}

  // What a node calls that has data.

  /// This node has a gradient of the round with this number.
  Status enter_round(Round round);
  /// Checks a wait in that round.
  Status round_fault();

  // What a node calls that is out of data.

  /// Says that this node has had data for `rounds` rounds.
  Status leave(Round rounds);
  /// The next thing that the others want of this node.
  enum class Next {
    nothing,  ///< all are out of data
    round,    ///< some node is in the round after `done`, or `interrupted`
    mean,     ///< the nodes with data ask for the mean model
  };
  /// Waits for that, after `done` rounds.
  Result<Next> await(Round done, const MeetingRegister& meetings, FaultNotice& fault_notice,
                     const std::function<bool()>& interrupted);

 private:
  struct State {
    Round rounds = 0;  ///< rounds begun with data
    bool out = false;
  };
  Status publish(const State& state);
  /// The state that `peer` published, if a node can be that far when this one has `done` rounds.
  std::optional<State> state_of(Rank peer, Round done) const;
  /// The lowest node that is not known to be out of data; none: all are.
  std::optional<Rank> first_with_data(Round done, State& state);

  Store& store_;
  RunNews& news_;
  const Rank rank_;
  const int nodes_;
  const std::chrono::milliseconds timeout_;
  const StopRequest stop_;
  std::map<Rank, Round> out_;  ///< nodes out of data, and their rounds

  std::mutex mutex_;  ///< guards what follows
  bool some_out_ = false;
  Round entered_ = 0;          ///< rounds with a gradient of this node
  Round told_ = 0;             ///< rounds of these that the others were told of
  std::optional<Round> left_;  ///< rounds for which this node had data, once it is out of them
};

}  // namespace sotto::internal

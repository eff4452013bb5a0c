// Where the nodes of a run wait for all others: at the end, or for the mean of their models. A node
// that waits for frames, or at another such place, learns from it at once that its wait cannot end,
// and which node is where.
//
// Each node says in the store to which meeting it has come, and after how many rounds; meetings are
// numbered, as all nodes come to the same ones in the same order.
//
// Thread safety: `wait_fault` from any thread, everything else on the node's own. The store must
// outlive it.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/store.h>

#include "run_news.h"

namespace sotto::internal {

/// The purpose of a meeting of all nodes.
enum class MeetingPlace : std::uint8_t {
  mean = 1,    ///< the mean of all models
  finish = 2,  ///< the end of the run
};

class MeetingRegister {
 public:
  MeetingRegister(Store& store, RunNews& news, Rank rank)
      : store_(store), news_(news), rank_(rank) {}

  /// This node has a gradient of the round with this number.
  void enter_round(Round round);
  /// This node comes to the next meeting after `rounds` rounds.
  Status come(MeetingPlace place, Round rounds);
  /// All have come to it, and leave.
  void leave();

  /// Fault::unexpected, naming `peer` and both nodes' rounds, when it waits at a meeting to which
  /// this node cannot come any more.
  Status wait_fault(Rank peer) const;
  /// Whether `peer` waits at the meeting that is next for this node, for the mean model after
  /// `rounds` rounds.
  bool asks_for_mean(Rank peer, Round rounds) const;

 private:
  struct Visit {
    MeetingPlace place;
    std::uint64_t number;  ///< number of the meeting
    Round rounds;          ///< rounds done before the meeting
  };
  std::optional<Visit> visit_of(Rank peer) const;

  Store& store_;
  RunNews& news_;
  const Rank rank_;
  mutable std::mutex mutex_;       ///< guards what follows
  std::uint64_t met_ = 0;          ///< meetings that are over
  Round entered_ = 0;              ///< rounds with a gradient of this node
  std::optional<Visit> visiting_;  ///< the meeting to which this node has come
};

}  // namespace sotto::internal

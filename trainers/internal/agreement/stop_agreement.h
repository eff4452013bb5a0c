// After which round the nodes of a run end when one of them is told to stop, or is out of data, so
// that all end with the same, and can save it.
//
// A node that is to end says so in the store, begins no further round, and says how many it has
// begun. The others hear of it where they wait: for its frames, at a meeting, before a round. Each
// then says how many rounds it has begun, and begins no other. Node 0 publishes the most of any,
// and all go on to that round: nobody waits for a neighbour that has ended before it.
//
// Thread safety: begin() on the node's own thread, everything else on any. Whatever it is given
// must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/store.h>
#include <sotto/trainers/meetings/store_collectives.h>

#include "run_news.h"

namespace sotto::internal {

/// Why a node wants the run to end before its last round.
enum class EndReason : std::uint8_t {
  none = 0,         ///< the node does not want that
  told = 1,         ///< a signal, or a call, asked for it
  out_of_data = 2,  ///< the node has no further batch
};

class StopAgreement {
 public:
  /// `stop`, once true, is as ask(EndReason::told); null: there is no such flag.
  StopAgreement(Store& store, RunNews& news, StoreCollectives& collectives, Rank rank, int nodes,
                const std::atomic<bool>* stop);

  /// This node wants all to end. May be called by a signal's handler.
  void ask(EndReason reason);
  /// Whether this node wants all to end, or knows of another one that does.
  bool wanted() const { return heard_ || own_reason() != EndReason::none; }

  /// Call it before a round, with the rounds that are done; may wait for the others. OK: the round
  /// is to be done. Fault::ended, with the reason: all end here. Other faults are those of the
  /// wait.
  Status begin(Round done);
  /// Why all end, "node 1 was told to stop"; empty as long as that is not decided.
  std::string why() const;
  /// Call it while this node waits for others in a round that it has begun: listens, and answers.
  void listen();

 private:
  EndReason own_reason() const;
  /// Takes note of the own wish or another node's, and says how far this one is. Locked.
  void answer();
  /// Waits for the decision of all nodes, and returns it.
  Status await_decision();
  /// Node 0: takes what `peer` has published.
  Status take_answer(Rank peer, const std::vector<std::byte>& value);
  /// Node 0: publishes the decision once it has all answers. Locked.
  void decide_if_complete();
  Status read_decision(const std::vector<std::byte>& value);
  Status ended() const;

  /// A node's answer.
  struct Answer {
    Round begun = 0;
    EndReason reason = EndReason::none;
  };

  Store& store_;
  RunNews& news_;
  StoreCollectives& collectives_;
  const Rank rank_;
  const int nodes_;
  const std::atomic<bool>* const stop_;
  std::atomic<EndReason> asked_{EndReason::none};
  std::atomic<bool> heard_{false};

  mutable std::mutex mutex_;  ///< guards what follows
  Round begun_ = 0;
  bool answered_ = false;
  std::map<Rank, Answer> answers_;  ///< answers of all nodes; only node 0 has them
  std::optional<Round> last_;       ///< the round after which all end
  std::string why_;                 ///< reason for last_ in words
};

}  // namespace sotto::internal

// Collectives of a run outside the training traffic, through the store: barriers, gather and
// broadcast. Nothing of it is counted as sent.
//
// Every node of the run calls the same functions in the same order. A wait ends with a fault when
// the awaited node stays away for the timeout, and at once when some node publishes why it gave up
// (FaultNotice). Faults name the node.
//
// Thread safety: one thread a node.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/store.h>
#include <sotto/trainers/meetings/fault_notice.h>

namespace sotto {

class StoreCollectives {
 public:
  /// `store` must outlive this object; a wait takes `timeout` at most.
  StoreCollectives(Store& store, Rank rank, int nodes, std::chrono::milliseconds timeout)
      : store_(store), rank_(rank), nodes_(nodes), timeout_(timeout), fault_notice_(store, rank) {}

  /// Says of a node whether a wait for it can end.
  using Look = std::function<Status(Rank)>;
  /// Asks `look` whenever this node has waited for another one for a while, and on node 0 when that
  /// one has come; a fault ends the wait.
  void look_with(Look look) { look_ = std::move(look); }
  /// Asks `miss`, too, but only while what the other node owes is missing.
  void miss_with(Look miss) { miss_ = std::move(miss); }

  /// Returns on every node after all have called it. `name` is used once a run. Node 0 leaves last,
  /// so it may close the store afterwards.
  Status barrier(std::string_view name);
  /// Publishes `value`; node 0 gets all of them, in rank order, the others nothing.
  Result<std::vector<std::vector<std::byte>>> gather(std::string_view name,
                                                     std::span<const std::byte> value);
  /// Node 0's `value`, on every node. `name` is used once a run.
  Result<std::vector<std::byte>> broadcast(std::string_view name, std::span<const std::byte> value);

  /// Waits for the value that `peer` publishes under `key`.
  Result<std::vector<std::byte>> await(const std::string& key, Rank peer) {
    return await(key, peer, timeout_, {});
  }
  /// Waits for the value that node 0 publishes under `key` once it has heard from all others; with
  /// `pulse`, for as long as the value of that key goes on changing.
  Result<std::vector<std::byte>> await_node_0(const std::string& key,
                                              const std::string& pulse = {}) {
    return await(key, 0, patience_with_node_0(), pulse);
  }
  /// Whether a wait for a node that is awaited or has come can end (look_with).
  Status look_at(Rank peer);

  /// Why nodes of the run give up; waits end by it.
  FaultNotice& fault_notice() { return fault_notice_; }

  /// The store that all nodes share.
  Store& store() { return store_; }
  /// This node's number.
  Rank rank() const { return rank_; }
  /// How many nodes there are.
  int nodes() const { return nodes_; }
  /// For which a wait lasts at most.
  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  /// Waits for `patience` or, with `pulse`, for as long as the value of that key goes on changing.
  Result<std::vector<std::byte>> await(const std::string& key, Rank peer,
                                       std::chrono::milliseconds patience,
                                       const std::string& pulse);
  /// Node 0 may itself wait for another node, and then reports the fault.
  std::chrono::milliseconds patience_with_node_0() const { return 2 * timeout_; }
  Status await_all(std::string_view name);

  Store& store_;
  Rank rank_;
  int nodes_;
  std::chrono::milliseconds timeout_;
  FaultNotice fault_notice_;
  Look miss_;
  Look look_;
};

}  // namespace sotto

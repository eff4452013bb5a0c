// How the nodes of a run meet outside the training traffic, through the store: barriers, and the
// averaged model for evaluation. Nothing here is counted as sent.
//
// Every node of the run calls the same functions in the same order. A wait ends with a fault when
// the awaited node stays away for the timeout, and at once when some node publishes why it gave up.
// Faults name the node.
//
// Thread safety: one thread a node.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/store.h>

namespace sotto {

/// Node 0's view of all models at one round.
struct AveragedModel {
  std::vector<float> parameters;              ///< x̄, weighted, summed in double in rank order
  double consensus_distance = 0;              ///< (1/n) Σ‖x_i − x̄‖²
  double bytes_per_node = 0;                  ///< bytes sent, mean over nodes
  std::vector<std::vector<std::byte>> notes;  ///< of all nodes, in rank order
};

/// One node's part in meetings. One thread at a time.
class Meetings {
 public:
  /// `store` must outlive this object; a wait takes `timeout` at most.
  Meetings(Store& store, Rank rank, int nodes, std::chrono::milliseconds timeout)
      : store_(store), rank_(rank), nodes_(nodes), timeout_(timeout) {}

  /// The models of these nodes, sorted and not all, are left out of averages.
  void leave_out(std::vector<Rank> nodes) { left_out_ = std::move(nodes); }

  /// Sets the weight of this node's model in averages; 1 by default.
  void weigh(double weight) { weight_ = weight; }
  /// Takes the consensus distance over the first values of what nodes publish; over all unless it
  /// is set.
  void measure_first(std::size_t values) { measured_ = values; }

  /// Says of a node whether a wait for it can end.
  using Look = std::function<Status(Rank)>;
  /// Asks `look` whenever this node has waited for another one for a while, and on node 0 when that
  /// one has come; a fault ends the meeting.
  void look_with(Look look) { look_ = std::move(look); }
  /// Asks `miss`, too, but only while what the other node owes is missing.
  void miss_with(Look miss) { miss_ = std::move(miss); }

  /// Called on node 0 with the averaged model; it may take any time.
  using Inspect = std::function<void(const AveragedModel&)>;
  /// Sees each node's model, in rank order.
  using Visit = std::function<void(Rank, std::span<const float>)>;

  /// Returns on every node after all have called it. `name` is used once a run. Node 0 leaves last,
  /// so it may close the store afterwards.
  Status barrier(std::string_view name);

  /// Publishes this node's model. On node 0, calls `visit` for each and `inspect`; all nodes leave
  /// when that is done. Every round is met at most once. `note`: what else node 0 is to know.
  Status meet(Round round, std::span<const float> parameters, std::uint64_t bytes_sent,
              const Inspect& inspect, const Visit& visit = nullptr,
              std::span<const std::byte> note = {});

  /// Publishes `value`; node 0 gets all of them, in rank order, the others nothing.
  Result<std::vector<std::vector<std::byte>>> gather(std::string_view name,
                                                     std::span<const std::byte> value);
  /// Node 0's `value`, on every node. `name` is used once a run.
  Result<std::vector<std::byte>> broadcast(std::string_view name, std::span<const std::byte> value);

  /// Waits for the value that `peer` publishes under `key`.
  Result<std::vector<std::byte>> await(const std::string& key, Rank peer) {
    return await(key, peer, timeout_);
  }
  /// Waits for the value that node 0 publishes under `key` once it has heard from all others.
  Result<std::vector<std::byte>> await_node_0(const std::string& key) {
    return await(key, 0, patience_with_node_0());
  }

  /// Tells all nodes that this one gives up, and why; their waits end with the same fault.
  void give_up(const Status& given);
  /// Why a node gave up; OK when none has.
  Status given_up();
  /// Why a node gave up; tells all nodes `cause` when none has and the store can be reached.
  Status given_up_or(const Status& cause);

 private:
  /// Waits for `patience` or, with `pulse`, for as long as the value of that key goes on changing.
  Result<std::vector<std::byte>> await(const std::string& key, Rank peer,
                                       std::chrono::milliseconds patience,
                                       const std::string& pulse = {});
  /// Node 0 may itself wait for another node, and then reports the fault.
  std::chrono::milliseconds patience_with_node_0() const { return 2 * timeout_; }
  /// The result of `look_` for a node that is awaited or has come.
  Status look_at(Rank peer);
  Status await_all(std::string_view name);
  Status inspect_all(Round round, std::size_t dimension, const Inspect& inspect,
                     const Visit& visit);
  Result<AveragedModel> average(Round round, std::size_t dimension, const Visit& visit);

  Store& store_;
  Rank rank_;
  int nodes_;
  std::chrono::milliseconds timeout_;
  std::vector<Rank> left_out_;
  Look miss_;
  double weight_ = 1;
  std::size_t measured_ = std::numeric_limits<std::size_t>::max();
  Look look_;
};

}  // namespace sotto

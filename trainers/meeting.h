// How the nodes of a run meet outside the training traffic, through the store: barriers, and the
// averaged model for evaluation. Nothing here is counted as sent.
//
// Every node of the run calls the same functions in the same order. One thread a node.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/comm/store.h>

namespace sotto {

/// Returns on every node after all have called it. `name` is used once a run. A node that does not
/// come is named in Fault::deadline. Node 0 leaves last, so it may close the store afterwards.
Status barrier(Store& store, std::string_view name, Rank rank, int nodes, Deadline deadline);

/// Node 0's view of all models at one round.
struct AveragedModel {
  std::vector<float> parameters;  ///< x̄, summed in double in rank order
  double consensus_distance = 0;  ///< (1/n) Σ‖x_i − x̄‖²
  double bytes_per_node = 0;      ///< mean over nodes of what they had sent
};

/// The meetings of one run at which node 0 looks at all models.
class Meetings {
 public:
  Meetings(Store& store, Rank rank, int nodes, std::chrono::milliseconds timeout)
      : store_(store), rank_(rank), nodes_(nodes), timeout_(timeout) {}

  /// What node 0 does with the models; it may take its time within the timeout.
  using Inspect = std::function<void(const AveragedModel&)>;
  /// Sees each node's model, in rank order.
  using Visit = std::function<void(Rank, std::span<const float>)>;

  /// Publishes this node's model. On node 0, calls `visit` for each and `inspect`; all nodes leave
  /// when that is done. Every round is met at most once.
  Status meet(Round round, std::span<const float> parameters, std::uint64_t bytes_sent,
              const Inspect& inspect, const Visit& visit = nullptr);

  /// Publishes `value`; node 0 gets all of them, in rank order, the others nothing.
  Result<std::vector<std::vector<std::byte>>> gather(std::string_view name,
                                                     std::span<const std::byte> value);
  /// Node 0's `value`, on every node. `name` is used once a run.
  Result<std::vector<std::byte>> broadcast(std::string_view name, std::span<const std::byte> value);

 private:
  Result<AveragedModel> average(Round round, std::size_t dimension, const Visit& visit);

  Store& store_;
  Rank rank_;
  int nodes_;
  std::chrono::milliseconds timeout_;
};

}  // namespace sotto

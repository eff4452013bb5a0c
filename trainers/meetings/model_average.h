// The average of all nodes' models at one round, for evaluation: the nodes publish their models in
// the store, and node 0 sums them. Nothing of it is counted as sent.
//
// Thread safety: one thread a node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/trainers/meetings/store_collectives.h>

namespace sotto {

/// Node 0's view of all models at one round.
struct AveragedModel {
  std::vector<float> parameters;              ///< x̄, weighted, summed in double in rank order
  double consensus_distance = 0;              ///< (1/n) Σ‖x_i − x̄‖²
  double bytes_per_node = 0;                  ///< bytes sent, mean over nodes
  std::vector<std::vector<std::byte>> notes;  ///< notes of all nodes, in rank order
};

class ModelAverage {
 public:
  /// `collectives` must outlive this object.
  explicit ModelAverage(StoreCollectives& collectives) : collectives_(collectives) {}

  /// The models of these nodes, sorted and not all, are left out of averages.
  void leave_out(std::vector<Rank> nodes) { left_out_ = std::move(nodes); }
  /// Sets the weight of this node's model in averages; 1 by default.
  void weigh(double weight) { weight_ = weight; }
  /// Takes the consensus distance over the first values of what nodes publish; over all unless it
  /// is set.
  void measure_first(std::size_t values) { measured_ = values; }

  /// Called on node 0 with the averaged model; it may take any time.
  using Inspect = std::function<void(const AveragedModel&)>;
  /// Sees each node's model, in rank order.
  using Visit = std::function<void(Rank, std::span<const float>)>;

  /// Publishes this node's model. On node 0, calls `visit` for each and `inspect`; all nodes leave
  /// when that is done. Every round is met at most once. `note`: what else node 0 is to know.
  Status meet(Round round, std::span<const float> parameters, std::uint64_t bytes_sent,
              const Inspect& inspect, const Visit& visit = nullptr,
              std::span<const std::byte> note = {});

 private:
  Status inspect_all(Round round, std::size_t dimension, const Inspect& inspect,
                     const Visit& visit);
  Result<AveragedModel> average(Round round, std::size_t dimension, const Visit& visit);

  StoreCollectives& collectives_;
  std::vector<Rank> left_out_;
  double weight_ = 1;
  std::size_t measured_ = std::numeric_limits<std::size_t>::max();
};

}  // namespace sotto

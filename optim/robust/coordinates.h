// Rules that take each coordinate by itself, over the neighbours' values and the own one, all of
// equal weight.
//
// Papers: Yin et al. 2018, "Byzantine-robust distributed learning: towards optimal statistical
// rates", arXiv:1803.01498. With at most b liars among n > 2 b models every coordinate of the
// result lies between the least and the largest honest value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sotto/optim/robust/aggregation.h>

namespace sotto {

/// The mean without the b largest and the b smallest values; where n ≤ 2 b, one or two values are
/// left. Without b it is the median (of an even number, the mean of the middle two).
class TrimmedMean final : public Aggregation {
 public:
  /// `trimmed` is b; without it, the median.
  TrimmedMean(std::optional<std::size_t> trimmed, std::size_t neighbours);

  std::string spec() const override;
  std::size_t aggregate(const Neighbourhood& models, std::span<float> out) override;

 private:
  std::optional<std::size_t> trimmed_;  // b
  std::vector<float> values_;           // values of one coordinate
};

/// Σ_j W_ij x_j, no defence at all: plain gossip, to compare with.
class WeightedMean final : public Aggregation {
 public:
  /// `ops` must outlive it.
  explicit WeightedMean(const Ops& ops) : ops_(ops) {}

  std::string spec() const override { return "mean"; }
  std::size_t aggregate(const Neighbourhood& models, std::span<float> out) override;

 private:
  const Ops& ops_;
};

}  // namespace sotto

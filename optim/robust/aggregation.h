// Rules by which a node takes in its neighbours' models although some of them may lie.
//
// Notation: x is the node's own model after its local step, u that step (x = old + u), x_j what
// neighbour j sent, Δ_j = x_j − x, n the models at hand: the neighbours' and the own one.
//
// Thread safety: one thread at a time. Ownership: views the caller's models; owns scratch memory,
// allocated when the rule is made.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/kernels/ops.h>

namespace sotto {

/// A neighbour's model, finite, and W_ij.
struct ReceivedModel {
  std::span<float> model;
  float weight = 0;
};

/// The inputs of a rule in one round. All vectors have the same length and are finite.
struct Neighbourhood {
  std::span<const float> own;               ///< x, the node's own model
  std::span<const float> step;              ///< u, the node's own step
  std::span<const ReceivedModel> received;  ///< models of the neighbours, in rank order
};

class Aggregation {
 public:
  virtual ~Aggregation() = default;

  /// The specification from which make_aggregation makes this rule.
  virtual std::string spec() const = 0;
  /// Writes the node's next model to `out`, which overlaps no input. The received models are
  /// scratch afterwards. Returns how many of them had no influence at all. A result that overflows
  /// is for the caller to notice.
  virtual std::size_t aggregate(const Neighbourhood& models, std::span<float> out) = 0;
};

/// One rule, as `sotto list` shows it.
struct AggregationInfo {
  std::string_view name;      ///< "clipped"
  std::string_view synopsis;  ///< "clipped:auto[:K], clipped:TAU, …"
  std::string_view summary;   ///< one sentence
};

/// All rules, in a fixed order.
std::span<const AggregationInfo> aggregations();

/// The rule where none is named.
inline constexpr std::string_view kDefaultAggregation = "clipped:auto";

/// Makes the rule that `spec` names, for models of `dimension` elements from up to `neighbours`.
/// Throws Error for a name or a parameter that is none.
std::unique_ptr<Aggregation> make_aggregation(std::string_view spec, std::size_t neighbours,
                                              std::size_t dimension, const Ops& ops);

}  // namespace sotto

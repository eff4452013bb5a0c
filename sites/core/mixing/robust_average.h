// The next model of a site by a robust rule, x ← A(x; x̂_j): what liars among the neighbours say
// has little weight in it while they are few (aggregation.h).
//
// A building block of GossipMixing, not for users. One thread at a time. Memory: a float a
// parameter, and one for each neighbour whose copy came.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sotto/kernels/ops.h>
#include <sotto/optim/robust/aggregation.h>

namespace sotto::sites {

class RobustAverage {
 public:
  /// For the model x, which is the caller's, as is `ops`. Throws Error for a rule that is none.
  RobustAverage(std::string rule, std::span<const float> x, const Ops& ops);

  /// The site has that many neighbours from now on, and the rule remembers nothing.
  void expect(std::size_t neighbours);
  /// The steps of the next round begin at x.
  void begin_round() { ops_.copy(x_, start_); }
  /// Neighbour j's copy counts in this round with the weight W_ij, as x + part (copy − x), where
  /// part < 1, and else as it is.
  void add(std::size_t neighbour, std::span<const float> copy, double part, float weight);
  /// A(x; the copies of this round), into `next`; `room` has the model's dimension. It may
  /// overflow.
  void average(std::span<float> room, std::span<float> next);

 private:
  std::string name_;
  std::span<const float> x_;
  const Ops& ops_;
  std::size_t neighbours_ = 0;
  std::unique_ptr<Aggregation> rule_;         // made for that many when first asked; null: not yet
  std::vector<float> start_;                  // x before the round's steps
  std::vector<std::vector<float>> received_;  // by neighbour, as the rule uses it up
  std::vector<ReceivedModel> models_;         // of the round
};

}  // namespace sotto::sites

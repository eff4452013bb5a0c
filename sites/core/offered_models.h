// The models that neighbours gave to a site that has none, until it begins at one of them.
//
// One neighbour may lie. Of three models the site begins at the one that is nearest to the others,
// and of two at the one that is nearer to its own: the farther a lie leads, the less it is
// believed. A single word is taken only where no second one comes in time.
//
// A building block of Site, not for users. A plain value. Memory: three models at most, until the
// site begins.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <sotto/base/check.h>
#include <sotto/base/ids.h>
#include <sotto/sites/core/places.h>
#include <sotto/sites/core/pull_bound.h>

namespace sotto::sites {

/// A model that a neighbour gave, and the round that it said it was of.
struct OfferedModel {
  std::size_t peer = 0;
  Round round = 0;
  std::vector<float> values;
};

class OfferedModels {
 public:
  /// Models that are kept; those that come later are left out.
  static constexpr std::size_t kMost = 3;
  /// With so many the site waits for no peer that is not in touch, nor has promised a model.
  static constexpr std::size_t kEnough = 2;

  /// Keeps a model, unless the peer has given one or there are enough.
  void add(OfferedModel model) {
    if (models_.size() < kMost && !has(model.peer)) {
      models_.push_back(std::move(model));
    }
  }
  /// Whether there is none.
  bool empty() const { return models_.empty(); }
  /// Whether no other is waited for that is not promised.
  bool enough() const { return models_.size() >= kEnough; }
  /// Whether no other is kept.
  bool full() const { return models_.size() >= kMost; }
  /// Whether this peer's is among them.
  bool has(std::size_t peer) const {
    return std::ranges::find(models_, peer, &OfferedModel::peer) != models_.end();
  }
  /// The one to begin at, for a site whose own model is `own`; the others are dropped. Requires
  /// one.
  OfferedModel choose(std::span<const float> own) {
    check(!models_.empty(), "a model was offered");
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < models_.size(); ++k) {
      if (const double far = distance_of(k, own); far < least) {
        best = k;
        least = far;
      }
    }
    OfferedModel chosen = std::move(models_[best]);
    models_.clear();
    return chosen;
  }
  /// The list of peers changed: a peer at `place[k]` was at k, and one at kNobody has gone.
  void rearrange(std::span<const std::size_t> place) {
    std::erase_if(models_, [&](const OfferedModel& model) { return place[model.peer] == kNobody; });
    for (OfferedModel& model : models_) {
      model.peer = place[model.peer];
    }
  }
  /// Drops all.
  void clear() { models_.clear(); }

 private:
  double distance_of(std::size_t which, std::span<const float> own) const {
    if (models_.size() <= kEnough) {
      return distance_between(models_[which].values, own);
    }
    double sum = 0;
    for (const OfferedModel& other : models_) {
      sum += distance_between(models_[which].values, other.values);
    }
    return sum;
  }

  std::vector<OfferedModel> models_;
};

}  // namespace sotto::sites

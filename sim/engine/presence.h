// The times when the nodes of a simulation come and go, by their availability.
//
// One thread at a time. Views the availabilities, which must outlive it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/sim/availability.h>
#include <sotto/sim/step_times.h>

namespace sotto {

class Presence {
 public:
  /// One availability for each node, by rank, or none: then all nodes are always there.
  explicit Presence(std::span<const NodeAvailability> availability)
      : availability_(availability), turns_(availability.size()) {
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      if (const auto& [times, start] = availability_[i]; times != nullptr) {
        turns_[i].emplace(times->steps, start);
      }
    }
  }

  /// Whether the node has an availability.
  bool has(Rank node) const { return index(node) < turns_.size() && turns_[index(node)]; }
  /// Whether the node is away now. Requires has(node).
  bool away(Rank node) const {
    return !availability_[index(node)].times->there(turns_[index(node)]->step());
  }
  /// The time when the node comes or goes next; kNever: it does not.
  SimTime next(Rank node) const { return has(node) ? turns_[index(node)]->next() : kNever; }
  /// The node comes or goes now. Requires that it was due.
  void turn(Rank node) { turns_[index(node)]->advance(); }

 private:
  static std::size_t index(Rank node) { return static_cast<std::size_t>(node); }

  std::span<const NodeAvailability> availability_;
  std::vector<std::optional<StepCursor>> turns_;
};

}  // namespace sotto

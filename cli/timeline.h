// What the nodes of a simulation did over time, small enough for a page however long the run is:
// the whole run as shares of all nodes, and two windows in which some nodes are seen one by one.
// One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "stretches.h"

namespace sotto::cli {

inline constexpr std::size_t kPhases = 4;

/// A part of a run, node by node.
struct TimelineWindow {
  Round first_round = 0;  ///< from when a node comes to this one, counted from 0,
  Round end_round = 0;    ///< until all that are shown have finished those before this one
  SimTime from = kNever;
  SimTime until = kNever;
  bool cut = false;                ///< it ends earlier, as a round is made of very many stretches
  std::vector<Stretch> stretches;  ///< by time of their ends; they may stick out of the window
};

class Timeline {
 public:
  static constexpr int kMostNodes = 32;  ///< in windows
  static constexpr Round kWindowRounds = 5;

  Timeline(int nodes, Round rounds);

  void add(const Stretch& stretch);
  /// A node has finished `round`.
  void finished(Rank node, Round round, SimTime time);
  /// Closes the windows that are open. Call it when the run has ended at `time`.
  void finish(SimTime time);

  int nodes() const { return nodes_; }
  int shown_nodes() const { return shown_; }
  const std::vector<TimelineWindow>& windows() const { return windows_; }
  /// The length of a bin of the whole run.
  SimTime bin() const { return bin_; }
  /// Time of all nodes in each phase, by bin; what is missing they had not begun, or had ended.
  const std::vector<std::array<SimTime, kPhases>>& bins() const { return bins_; }

 private:
  void widen();

  int nodes_;
  int shown_;
  std::vector<TimelineWindow> windows_;
  std::vector<Round> done_;  ///< by shown node
  SimTime bin_ = 1000;
  std::vector<std::array<SimTime, kPhases>> bins_;
};

}  // namespace sotto::cli

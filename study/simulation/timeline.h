// What the nodes of a simulation did over time, small enough for a page however long the run is:
// the whole run as shares of all nodes, and a few windows in which some nodes are seen one by one:
// the first rounds, and those round what happens.
// One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include <sotto/study/simulation/stretches.h>

namespace sotto::study {

/// The number of values of Phase.
inline constexpr std::size_t kPhases = 4;

/// A part of a run, node by node.
struct TimelineWindow {
  Round first_round = 0;  ///< from when a node comes to this one, counted from 0,
  Round end_round = 0;    ///< until all that are shown have finished those before this one
  SimTime from = kNever;
  SimTime until = kNever;
  std::string moment = {};         ///< what happens in it; empty: it is one of rounds
  bool cut = false;                ///< it ends earlier, as a round is made of very many stretches
  std::vector<Stretch> stretches;  ///< by time of their ends; they may stick out of the window
};

/// What happens in a run from outside.
struct Happenings {
  /// Something that happens at one time.
  struct Moment {
    SimTime at = 0;
    std::string text;
  };
  std::vector<Moment> moments;  ///< in their order
  std::vector<Rank> nodes;      ///< to whom, those to show first in front
};

class Timeline {
 public:
  static constexpr int kMostNodes = 32;  ///< in windows
  static constexpr Round kWindowRounds = 5;
  static constexpr std::size_t kMostMoments = 3;  ///< with a window of their own

  /// Keeps what so many nodes do in so many rounds.
  Timeline(int nodes, Round rounds, Happenings happenings = {});

  /// Takes a stretch; those of one node come in the order of time.
  void add(const Stretch& stretch);
  /// A node has finished `round`.
  void finished(Rank node, Round round, SimTime time);
  /// Closes the windows that are open. Call it when the run has ended at `time`.
  void finish(SimTime time);

  int nodes() const { return nodes_; }
  /// The nodes that are shown one by one, ascending.
  const std::vector<Rank>& shown() const { return shown_; }
  int shown_nodes() const { return static_cast<int>(shown_.size()); }
  /// The row of a node that is shown; −1 of others.
  int row(Rank node) const { return rows_[static_cast<std::size_t>(node)]; }
  const std::vector<TimelineWindow>& windows() const { return windows_; }
  /// The length of a bin of the whole run.
  SimTime bin() const { return bin_; }
  /// Time of all nodes in each phase, by bin; what is missing they had not begun, or had ended.
  const std::vector<std::array<SimTime, kPhases>>& bins() const { return bins_; }

 private:
  void widen();
  void add_to_windows(const Stretch& stretch);
  /// Opens a window for a moment that has come.
  void open_at(const Happenings::Moment& moment);

  int nodes_;
  std::vector<Rank> shown_;
  std::vector<int> rows_;  ///< by node
  std::vector<TimelineWindow> windows_;
  std::vector<Round> done_;  ///< by row
  std::vector<Happenings::Moment> moments_;
  std::size_t next_moment_ = 0;
  std::deque<Stretch> recent_;  ///< of those shown, where moments are still to come
  Round lead_ = 0;              ///< the most rounds that one of those shown has finished,
  std::deque<SimTime> led_;     ///< and when the last few of them were first finished
  SimTime bin_ = 1000;
  std::vector<std::array<SimTime, kPhases>> bins_;
};

}  // namespace sotto::study

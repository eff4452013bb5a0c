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
  /// First round, counted from 0. A window of rounds begins when the first shown node begins this
  /// one; a window of a moment begins earlier.
  Round first_round = 0;
  /// The round behind the last. A window of rounds ends when all shown nodes have finished those
  /// before this one; a window of a moment, when the first shown node has.
  Round end_round = 0;
  SimTime from = kNever;
  SimTime until = kNever;
  /// Text of the event that the window shows; empty: it is a window of rounds.
  std::string moment = {};
  bool cut = false;  ///< the window ends early, as it has too many stretches
  /// Stretches by time of their ends; they may begin or end outside of the window.
  std::vector<Stretch> stretches;
};

/// What happens in a run from outside.
struct Happenings {
  /// Something that happens at one time.
  struct Moment {
    SimTime at = 0;
    std::string text;
  };
  std::vector<Moment> moments;  ///< events, in order of time
  std::vector<Rank> nodes;      ///< nodes that something happens to; these are shown first
};

class Timeline {
 public:
  static constexpr int kMostNodes = 32;  ///< most nodes that windows show
  static constexpr Round kWindowRounds = 5;
  static constexpr std::size_t kMostMoments = 3;  ///< most moments with a window of their own

  /// Keeps what `nodes` nodes do in `rounds` rounds.
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
  std::vector<int> rows_;  ///< row of each node, by rank; −1: not shown
  std::vector<TimelineWindow> windows_;
  std::vector<Round> done_;  ///< rounds that each shown node has finished, by row
  std::vector<Happenings::Moment> moments_;
  std::size_t next_moment_ = 0;
  /// Latest stretches of the shown nodes, kept while moments are to come.
  std::deque<Stretch> recent_;
  Round lead_ = 0;           ///< most rounds that any shown node has finished
  std::deque<SimTime> led_;  ///< times when the last few of these rounds were first finished
  SimTime bin_ = 1000;
  std::vector<std::array<SimTime, kPhases>> bins_;
};

}  // namespace sotto::study

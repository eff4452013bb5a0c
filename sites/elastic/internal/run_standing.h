// How a node stands to runs that it is in, was in, or has votes of in its folder. Not for users.
//
// A process is in one run at most, which it founded, by its own votes or anew, or joined. What is
// in the folder are the votes of a run that it began, perhaps in another process. They count until
// a run is founded or given up: either is a later decision. Once the node takes part in a run while
// they do not count, they are dropped, once, unless that run is the one that it founded.
//
// A plain value.
#pragma once

#include <cstdint>

#include <sotto/sites/epochs/epoch_node.h>

namespace sotto {

class RunStanding {
 public:
  /// The votes in the folder are of a run that ended so that another may follow.
  void votes_are_over() { votes_over_ = true; }
  /// This process founded the run that it is in.
  void found() { votes_over_ = settled_ = true; }
  /// It gave up a run, in which it was a member in this stay.
  void give_up(const sites::History& run, std::uint32_t stay) {
    votes_over_ = true;
    settled_ = stuck_ = false;
    given_up_ = run;
    stay_ = stay + 1;
  }
  /// As last looked at: it is a member, and too many others are lost for the run to go on.
  void set_stuck(bool stuck) { stuck_ = stuck; }
  /// It was told to finish.
  void leave() { leaves_ = true; }
  /// Whether it is a member. True if the votes in the folder are to be dropped: it is in another
  /// run than theirs.
  bool look(bool is_member) {
    took_part_ = took_part_ || is_member;
    const bool drops = is_member && votes_over_ && !settled_;
    settled_ = settled_ || drops;
    return drops;
  }

  bool votes_count() const { return !votes_over_; }
  bool stuck() const { return stuck_; }
  bool leaves() const { return leaves_; }
  /// Whether it has been a member.
  bool took_part() const { return took_part_; }
  /// The run that it gave up last; zeros: none.
  const sites::History& given_up() const { return given_up_; }
  /// Number of its next stay in a run.
  std::uint32_t stay() const { return stay_; }

 private:
  sites::History given_up_{};
  std::uint32_t stay_ = 0;
  bool votes_over_ = false;
  bool settled_ = false;  ///< no votes are left to drop: it founded its run, or has dropped them
  bool stuck_ = false;
  bool leaves_ = false;
  bool took_part_ = false;
};

}  // namespace sotto

// The meetings of an optimizer's nodes outside the rounds, for a run that meets in them, too.
#pragma once

#include <sotto/trainers/meeting.h>
#include <sotto/trainers/optimizer.h>

namespace sotto::internal {

struct RunMeetings {
  /// The optimizer's own meetings, which end with it: they leave out and weigh as its options
  /// say, and end when a wait in them cannot.
  static Meetings& of(Optimizer& optimizer);
};

}  // namespace sotto::internal

// What a run of a task reaches of its optimizer, beside the calls that every program makes.
#pragma once

#include <sotto/trainers/meeting.h>
#include <sotto/trainers/optimizer.h>

#include "compression_watch.h"

namespace sotto::internal {

struct RunAccess {
  /// The optimizer's own meetings, for a run that meets between rounds too. They end with it, leave
  /// out and weigh as its options say, and end when a wait in them cannot.
  static Meetings& meetings(Optimizer& optimizer);
  /// The watch on compression: a run knows when it will report, and so which rounds to measure.
  static CompressionWatch& compression(Optimizer& optimizer);
};

}  // namespace sotto::internal

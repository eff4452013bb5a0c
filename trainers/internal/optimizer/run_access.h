// What a run of a task reaches of its optimizer, beside the calls that every program makes.
#pragma once

#include <sotto/trainers/meetings/model_average.h>
#include <sotto/trainers/meetings/store_collectives.h>
#include <sotto/trainers/optimizer.h>

#include "compression_watch.h"

namespace sotto::internal {

struct RunAccess {
  /// The optimizer's own collectives, for a run that meets between rounds too. They end with it,
  /// and a wait in them ends when it cannot succeed.
  static StoreCollectives& collectives(Optimizer& optimizer);
  /// The average of all models, which leaves out and weighs as the optimizer's options say.
  static ModelAverage& average(Optimizer& optimizer);
  /// Takes tensors that lie at other nodes into this one's model (ModelMeetings::bring_together).
  static Status bring_together(Optimizer& optimizer);
  /// The watch on compression: a run knows when it will report, and so which rounds to measure.
  static CompressionWatch& compression(Optimizer& optimizer);
};

}  // namespace sotto::internal

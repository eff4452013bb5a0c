// The settings of a training run as options of a command. Plain values.
#pragma once

#include <sotto/study/train_options.h>

#include "commands.h"

namespace sotto::cli {

/// What `sotto train` takes, and `sotto compare` for all runs.
struct TrainFlags : TrainOptions {
  OutputOptions common;
};

/// `flags` must live as long as the command.
void add_train_options(CLI::App& command, TrainFlags& flags);

}  // namespace sotto::cli

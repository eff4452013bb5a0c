// The settings of a training run as options of a command. Plain values.
#pragma once

#include <sotto/console/command.h>
#include <sotto/study/train/train_options.h>

namespace sotto::cli {

/// What `sotto train` takes, and `sotto compare` for all runs.
struct TrainFlags : study::TrainOptions {
  console::OutputOptions common;
};

/// `flags` must live as long as the command.
void add_train_options(CLI::App& command, TrainFlags& flags);

}  // namespace sotto::cli

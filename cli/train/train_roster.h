// `sotto train` as one node of a run whose nodes come and go. One call at a time.
#pragma once

#include <sotto/console/command.h>
#include <sotto/sites/nodes/roster_settings.h>

#include "train_flags.h"
#include "train_observers.h"

namespace sotto::cli {

/// Adds what such a run has beside the options of training, which the command has already: seeds
/// and more, and MIN:MAX as the number of nodes. `roster` must live as long as the command.
void add_roster_options(CLI::App& command, RosterSettings& roster);

/// Runs the node until its rounds are over or it is told to stop. Returns the program's exit
/// status.
int run_by_roster(const TrainFlags& options, const ObserveOptions& observe,
                  const RosterSettings& roster, const CLI::App& command);

}  // namespace sotto::cli

// `sotto train` as one node of a run whose nodes come and go. One call at a time.
#pragma once

#include <sotto/console/command.h>
#include <sotto/sites/elastic/elastic_settings.h>

#include "train_flags.h"
#include "train_observers.h"

namespace sotto::cli {

/// Adds what such a run has beside the options of training, which the command has already: seeds
/// and more, and MIN:MAX as the number of nodes. `settings` must live as long as the command.
void add_roster_options(CLI::App& command, ElasticSettings& settings);

/// Runs the node until its rounds are over or it is told to stop. Returns the program's exit
/// status.
int run_by_roster(const TrainFlags& options, const ObserveOptions& observe,
                  const ElasticSettings& settings, const CLI::App& command);

}  // namespace sotto::cli

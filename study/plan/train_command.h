// The command that trains as a planned run did. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/train/run_spec.h>

namespace sotto::study {

/// The settings of the `sotto train` that does this run on the scenario's nodes, with its task and
/// transport; `rounds` where neither says how long. Throws Error as with_run does.
std::vector<RunSetting> command_settings(const RunSpec& run, const Scenario& scenario,
                                         Round rounds);

/// The `sotto train` with command_settings, as a shell takes it.
std::string train_command(const RunSpec& run, const Scenario& scenario, Round rounds);

}  // namespace sotto::study

// Differential privacy in the settings of `sotto train`: resolves the request for a task, or
// refuses it. Pure functions of the settings and the data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sotto/base/setting_text.h>
#include <sotto/optim/privacy/privacy_options.h>
#include <sotto/study/train/train_options.h>
#include <sotto/trainers/data/shared_scaling.h>
#include <sotto/trainers/tasks/task_registry.h>

namespace sotto::study {

/// The clipping that tasks must do for privacy by example. Requires options that check_settings
/// takes.
std::optional<ExampleClipping> example_clipping(const TrainOptions& options);

/// The mechanism of every node, accounted for the node with the fewest examples. Chooses the noise
/// for `rounds` rounds when only ε is given, and lowers `rounds` to what the budget allows. What
/// `scaling` told of the node's data counts; null: there is none. Throws Error.
std::optional<PrivacyOptions> plan_privacy(const TrainOptions& options, const TaskFactory& tasks,
                                           Round& rounds, const SharedScaling* scaling);

/// The scaling that the options name; none where they name none. Throws Error, also for own sums
/// that did not go into it.
std::optional<SharedScaling> scaling_of(const TrainOptions& options);

/// Promises that are weaker than they look, and a run that ends before `asked` rounds.
void warn_of_privacy(const TrainOptions& options, const std::optional<PrivacyOptions>& privacy,
                     const TaskFactory& tasks, Round asked, Round rounds,
                     std::vector<SettingText>& warnings);

}  // namespace sotto::study

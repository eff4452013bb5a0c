#include "train_checks.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/comm/transport.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/topology/registry.h>
#include <sotto/trainers/model.h>
#include <sotto/trainers/task_registry.h>

#include "fixed_words.h"
#include "nearest.h"

namespace sotto::cli {
namespace {

void check_names(const TrainOptions& o) {
  refuse_mistyped("--task", o.task, names_of(tasks()));
  refuse_mistyped("--model", o.model, names_of(models()));
  refuse_mistyped("--partition", o.partition, fixed_words("--partition"));
  refuse_mistyped("--topology", o.topology, names_of(topologies()));
  refuse_mistyped("--weighting", o.weighting, fixed_words("--weighting"));
  refuse_mistyped("--transport", o.transport, names_of(transports()));
  refuse_mistyped("--algorithm", o.algorithm, names_of(algorithms()));
  refuse_mistyped("--compressor", o.compressor, names_of(compressors()));
  refuse_mistyped("--step-rule", o.step_rule, fixed_words("--step-rule"));
  refuse_mistyped("--outer-step-rule", o.outer_step_rule, fixed_words("--outer-step-rule"));
  refuse_mistyped("--schedule", o.schedule, fixed_words("--schedule"));
}

/// "libsvm:FILE[,features=N]" → "features"
std::vector<std::string> parameters_of(std::string_view synopsis) {
  std::vector<std::string> names;
  for (auto comma = synopsis.find(','); comma != std::string_view::npos;
       comma = synopsis.find(',', comma + 1)) {
    const std::string_view rest = synopsis.substr(comma + 1);
    names.emplace_back(rest.substr(0, rest.find('=')));
  }
  return names;
}

/// A parameter that the task does not have would be taken for a part of its path.
void check_task_parameters(std::string_view spec) {
  const auto all = tasks();
  const auto info = std::find_if(all.begin(), all.end(),
                                 [&](const TaskInfo& task) { return task.name == family(spec); });
  const std::string_view path = spec.substr(std::min(spec.size(), spec.find(':') + 1));
  std::error_code code;
  if (info == all.end() || std::filesystem::exists(path, code)) {
    return;
  }
  const std::vector<std::string> known = parameters_of(info->synopsis);
  for (auto comma = spec.find(','); comma != std::string_view::npos;
       comma = spec.find(',', comma + 1)) {
    const std::string_view item = spec.substr(comma + 1, spec.find(',', comma + 1) - comma - 1);
    const std::string_view name = item.substr(0, item.find('='));
    if (name.size() < item.size() && std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string near = did_you_mean(name, known);
      refuse("--task", spec,
             fmt::format("{} has no parameter '{}'{}{}", info->name, name, near,
                         near.empty() ? fmt::format("; it is written {}", info->synopsis) : ""));
    }
  }
}

void check_checkpoints(const TrainOptions& o) {
  if (o.checkpoint.empty() && o.resume) {
    throw Error("--resume: name the folder of the checkpoints to go on from (--checkpoint DIR)");
  }
  if (o.checkpoint.empty() && o.checkpoint_every) {
    refuse("--checkpoint-every", fmt::to_string(*o.checkpoint_every),
           "nothing is saved without --checkpoint DIR");
  }
  std::error_code code;
  if (o.resume && !std::filesystem::exists(o.checkpoint, code)) {
    refuse("--checkpoint", o.checkpoint,
           "there is no such folder, so that there is nothing to go on from; start the run without "
           "--resume");
  }
}

}  // namespace

void check_options(const TrainOptions& options) {
  check_names(options);
  check_task_parameters(options.task);
  check_checkpoints(options);
  check_settings(options);
}

}  // namespace sotto::cli

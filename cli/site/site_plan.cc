#include "site_plan.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/json_text.h>
#include <sotto/base/names.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/study/json/site_config.h>
#include <sotto/study/train/paced_task.h>
#include <sotto/study/train/privacy_plan.h>
#include <sotto/study/train/scaling_file.h>
#include <sotto/study/train/train_checks.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/trainers/files/exported_model.h>
#include <sotto/trainers/files/start_file.h>

#include "site_file_checks.h"

namespace sotto::cli {
namespace {

/// The list of an observer may say that it sends, which it does not.
void warn_of_observer(const SiteOptions& run, std::vector<std::string>& warnings) {
  for (const TrustedPeer& line : run.security.peers->peers()) {
    if (run.only_takes && line.rank != run.rank && line.send_to) {
      warnings.push_back(fmt::format(
          "observer: it sends nothing, and the list has send_to = yes for {}", line.name));
    }
  }
}

/// What `read` returns; an error of what the setting names, as of a file, is one of this setting.
template <typename Read>
auto naming(std::string_view setting, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw error.field() == setting ? error : Error(setting, error.what());
  }
}

/// The site's options. What is wrong in its key or its list names the place in that file itself.
SiteOptions read_options(const SiteConfig& config) {
  try {
    return options_of(config.site);
  } catch (const Error& error) {
    throw error.field().empty() ? error : Error(config.places.blame(error));
  }
}

/// The initial model: that of the file that `init` names, else the task's own.
void take_start(const study::TrainOptions& o, SitePlan& plan) {
  if (o.init.empty()) {
    plan.run.init = "";
    plan.parameters.resize(plan.task->dimension());
    plan.task->initialize(plan.parameters, o.seed);
    return;
  }
  Start start = naming("init", [&] { return read_start(o.init, plan.task->layout()); });
  plan.parameters = std::move(start.parameters);
  plan.run.init = model_digest(plan.parameters);
  if (!start.left_behind.empty()) {
    plan.warnings.push_back("init: " + start.left_behind);
  }
}

TaskFactory make_tasks(const SiteConfig& config, const SharedScaling* scaling) {
  const study::TrainOptions& o = config.training;
  TaskOptions task;
  task.model = o.model;
  task.partition = o.partition;
  task.batch = o.batch.value_or(task.batch);
  task.nodes = config.part.of;
  task.seed = o.seed;
  task.clipping = example_clipping(o);
  if (config.part.of == 1 && o.partition != study::TrainOptions().partition) {
    refuse("partition", o.partition, "it says how data are split; say into what with part");
  }
  const auto load = [&] {
    try {
      return load_task(o.task, scaling);
    } catch (const Error& error) {
      const bool named = error.field() == "task" || error.field() == "scaling";
      throw named ? error : Error("task", error.what());
    }
  };
  auto data = load();
  require_own_gradients(*data, "a site");
  return {std::move(data), task};
}

/// The site's part of the data, and what depends on it: how often the model is evaluated, and the
/// compressor's parts by tensor.
void take_task(const SiteConfig& config, const TaskFactory& tasks, SitePlan& plan) {
  const study::TrainOptions& o = config.training;
  const int part = config.part.number - 1;
  SiteOptions& run = plan.run;
  plan.task = tasks.make(part);
  if (!o.gradient_time.empty()) {
    plan.task = study::make_paced_task(std::move(plan.task), study::parse_pace(o.gradient_time),
                                       o.seed, part);
  }
  if (const auto examples = tasks.examples_per_node(); !examples.empty()) {
    plan.examples = examples[static_cast<std::size_t>(part)];
  }
  plan.eval_every = o.eval_every.value_or(
      std::max<Round>(plan.task->rounds_per_epoch() / run.communication_interval, 1));
  run.scaling = tasks.data().scaling;
  run.compressor = naming("compressor", [&] {
    return make_compressor(run.compressor, ContractKind::contraction, host_ops(),
                           plan.task->layout())
        ->spec();
  });
}

/// What a model that is written for other programs says of itself.
void take_export(const SiteConfig& config, const TaskFactory& tasks, SitePlan& plan) {
  SiteOptions& run = plan.run;
  if (const auto& data = tasks.data().dataset) {
    plan.of_data = data->warnings();
    run.data = data->names();
    run.notes = notes_on(*data);
    run.units = units_of(*data);
  }
  run.notes["sotto"] = SOTTO_VERSION;
  run.notes["model"] = tasks.options().model;
  run.notes["site"] = run.name;
  run.export_file = config.export_file;
  if (config.export_file.ends_with(kOnnxFile)) {
    naming("export", [&] { check_onnx(plan.task->layout(), run.units); });
  }
}

/// Noise that is to be chosen by ε alone depends on how long the site trains.
std::optional<PrivacyOptions> site_privacy(const study::TrainOptions& o, const TaskFactory& tasks,
                                           const SharedScaling* scaling, Round steps,
                                           SitePlan& plan) {
  if (wants_privacy(o) && !o.noise_multiplier && steps == 0) {
    refuse("privacy_epsilon", fmt::to_string(*o.privacy_epsilon),
           "how much noise it takes depends on the number of rounds: give " + mention("rounds") +
               ", or " + mention("noise_multiplier"));
  }
  const Round asked = steps == 0 ? console::kMostRounds : steps;
  Round allowed = asked;
  auto privacy = plan_privacy(o, tasks, allowed, scaling);
  if (privacy && !privacy->before.empty()) {
    plan.notices.push_back(
        fmt::format("the sums for {} cost epsilon {:.4g} at delta {} before the first step, which "
                    "counts in all figures of privacy",
                    o.scaling, epsilon_spent(*privacy, 0), privacy->delta));
  }
  if (privacy && allowed < asked) {
    plan.warnings.push_back(fmt::format(
        "the privacy budget lasts for {} steps; after them the site only passes on what others "
        "make",
        allowed));
  }
  return privacy;
}

}  // namespace

AgreedSettings settings_in_file(const SiteConfig& config) {
  const Security any{make_key_pair(), nullptr};  // no setting depends on the key
  SiteOptions run{.security = any};
  try {
    take_shared_settings(config.site, run);
  } catch (const Error& error) {
    throw Error(config.places.blame(error));
  }
  if (const std::string& scaling = config.training.scaling; !scaling.empty()) {
    try {
      run.scaling = scaling_digest(study::read_scaling("scaling", scaling));
    } catch (const Error& error) {
      throw Error(config.places.blame(error));
    }
  }
  AgreedSettings settings = shared_settings(run, {});
  constexpr auto kOfData =
      std::to_array<std::string_view>({"parameters", "layout", "columns", "classes", "init"});
  std::erase_if(settings, [&](const auto& setting) {
    return std::ranges::find(kOfData, setting.first) != kOfData.end();
  });
  if (!config.training.task.empty()) {
    settings.insert(settings.begin(), {"model", config.training.model});
  }
  return settings;
}

SitePlan make_site_plan(const SiteConfig& config) {
  const study::TrainOptions& o = config.training;
  if (o.task.empty()) {
    throw Error(fmt::format("{}: it is missing: the data to train on, e.g. \"csv:patients.csv\"",
                            config.places.of("training.task")));
  }
  SitePlan plan{.run = read_options(config),
                .task = {},
                .parameters = {},
                .config = {},
                .warnings = {},
                .of_data = {},
                .notices = {}};
  SiteOptions& run = plan.run;
  check_guarded(config, plan.warnings);
  try {
    check_options(o);
    check_result_files(config);
    warn_of_observer(run, plan.warnings);
    const auto scaling = study::scaling_of(o);
    const SharedScaling* const shared = scaling ? &*scaling : nullptr;
    const TaskFactory tasks = make_tasks(config, shared);
    take_task(config, tasks, plan);
    take_export(config, tasks, plan);
    take_start(o, plan);
    run.privacy = site_privacy(
        o, tasks, shared, run.rounds * run.own_steps.value_or(run.communication_interval), plan);
    plan.config = study::site_config_json(run, tasks,
                                          fmt::format("{}/{}", config.part.number, config.part.of),
                                          o.algorithm, plan.eval_every);
    return plan;
  } catch (const Error& error) {
    throw Error(config.places.blame(error));
  }
}

}  // namespace sotto::cli

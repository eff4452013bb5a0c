#include "site_plan.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/json_text.h>
#include <sotto/base/names.h>
#include <sotto/comm/key_file.h>
#include <sotto/comm/peers_file.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/sites/core/site_admission.h>
#include <sotto/study/json/run_config.h>
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

using sites::MixingKind;

/// What an algorithm of `sotto train` is between sites.
struct Way {
  std::string_view name;  ///< of the algorithm
  MixingKind exchange;
  bool compresses;
};
constexpr auto kWays = std::to_array<Way>({{"pushsum", MixingKind::push_sum, true},
                                           {"choco", MixingKind::gossip, true},
                                           {"dpsgd", MixingKind::gossip, false},
                                           {"robust", MixingKind::gossip, false}});

/// The algorithms that exchange in this way, in words.
std::string ways_of(MixingKind exchange) {
  return word_list(names_with(kWays, [&](const Way& way) { return way.exchange == exchange; }));
}

const Way& way_of(std::string_view algorithm) {
  const auto* const way = std::ranges::find(kWays, algorithm, &Way::name);
  if (way == kWays.end()) {
    refuse("algorithm", algorithm,
           fmt::format("sites exchange by {}, along one-sided trust too, or by {}, where all trust "
                       "is mutual",
                       ways_of(MixingKind::push_sum), ways_of(MixingKind::gossip)));
  }
  return *way;
}

SiteOptions read_identity(const SiteConfig& config) {
  const KeyPair keys = read_key_file(config.key);
  auto lines = read_peers_file(config.peers, PeerNumbers::of_names);
  const Rank rank = check_list(config, keys.public_key, lines).rank;
  if (lines.size() < 2) {  // later it may: whoever was listed is revoked then
    refuse("peers", config.peers, "it names nobody but this site");
  }
  return {.security = {keys, std::make_shared<AllowList>(std::move(lines))}, .rank = rank};
}

void take_exchange(const study::TrainOptions& o, SiteOptions& run) {
  const AlgorithmInfo& info = algorithm_info(o.algorithm);
  const Way& way = way_of(info.name);
  run.exchange = way.exchange;
  run.compressor = o.compressor;
  if (run.compressor.empty()) {
    run.compressor = info.default_compressor;
  }
  if (!way.compresses && run.compressor != "none") {
    refuse("compressor", run.compressor,
           fmt::format("{} sends whole models; {} compress", o.algorithm,
                       word_list(names_with(kWays, &Way::compresses), "and")));
  }
  const AlgorithmSpec algorithm = algorithm_of(o);
  run.rule = algorithm.hyperparameters.text("rule");
  run.consensus_stepsize = algorithm.hyperparameters.optional_real("eta");
}

void take_secure_sum(const SiteConfig& config, SiteOptions& run) {
  run.sum = config.sum;
  if (!config.secure_sum) {
    return;
  }
  if (algorithm_info(config.training.algorithm).name != "dpsgd") {
    refuse("secure-sum", "true",
           fmt::format("it is for dpsgd, whose models are averaged as they are, and not for {}",
                       config.training.algorithm));
  }
  run.exchange = MixingKind::secure_mean;
}

/// What the file says of the exchange and of steps, without the data.
void take_shared(const SiteConfig& config, SiteOptions& run) {
  const study::TrainOptions& o = config.training;
  take_exchange(o, run);
  if (o.communication_interval < 1) {
    refuse("communication-interval", fmt::to_string(o.communication_interval),
           "it must be 1 or more steps");
  }
  run.communication_interval = o.communication_interval;
  run.rounds = o.rounds.value_or(0);
  const Round steps = run.rounds * run.communication_interval;
  if (family_name(o.schedule) == "cosine" && steps == 0) {
    refuse("schedule", o.schedule, "it needs an end: give rounds");
  }
  run.step_rule = step_rule_of(o, steps);
  run.seed = o.seed;
  run.window = config.window;
  run.mass = config.mass;
  take_secure_sum(config, run);
}

void take_network(const SiteConfig& config, SiteOptions& run, std::vector<std::string>& warnings) {
  sites::admit_bounds(config.mass, config.pull);
  if (config.observer && run.exchange != MixingKind::push_sum) {
    refuse("observer", "true",
           "other exchanges need neighbours that send, too; it is for " +
               ways_of(MixingKind::push_sum));
  }
  for (const TrustedPeer& line : run.security.peers->peers()) {
    if (config.observer && line.rank != run.rank && line.send_to) {
      warnings.push_back(fmt::format(
          "observer: it sends nothing, and the list has send_to = yes for {}", line.name));
    }
  }
  run.slack = config.slack;
  run.only_takes = config.observer;
  run.pull = config.pull;
  run.timeout = config.timeout;
  run.patience = config.patience;
  run.found_after = config.found_after;
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
  return {load(), task};
}

/// Noise that is to be chosen by ε alone depends on how long the site trains.
std::optional<PrivacyOptions> site_privacy(const study::TrainOptions& o, const TaskFactory& tasks,
                                           const SharedScaling* scaling, Round steps,
                                           SitePlan& plan) {
  if (wants_privacy(o) && !o.noise_multiplier && steps == 0) {
    refuse("privacy-epsilon", fmt::to_string(*o.privacy_epsilon),
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

Json config_json(const SiteConfig& config, const SitePlan& plan, const TaskFactory& tasks) {
  const SiteOptions& run = plan.run;
  Json json = {{"name", run.name},
               {"task", tasks.data().spec},
               {"model", tasks.options().model},
               {"batch", tasks.options().batch},
               {"scaling", run.scaling},
               {"part", fmt::format("{}/{}", config.part.number, config.part.of)},
               {"partition", tasks.options().partition},
               {"algorithm", config.training.algorithm},
               {"compressor", run.compressor},
               {"rule", run.rule},
               {"step_rule", run.step_rule.rule},
               {"lr", run.step_rule.learning_rate},
               {"momentum", run.step_rule.momentum},
               {"weight_decay", run.step_rule.weight_decay},
               {"schedule", run.step_rule.schedule.spec()},
               {"privacy", study::privacy_config_json(run.privacy)},
               {"communication_interval", run.communication_interval},
               {"rounds", run.rounds},
               {"eval_every", plan.eval_every},
               {"seed", run.seed},
               {"window", run.window},
               {"slack", run.slack},
               {"observer", run.only_takes},
               {"mass_return", run.mass.back},
               {"parcel_mass", run.mass.parcel},
               {"exchange", sites::name_of(run.exchange)},
               {"secure_colluders", run.sum.colluders},
               {"secure_range", run.sum.range},
               {"pull_most", run.pull.most},
               {"pull_memory", run.pull.memory}};
  for (const auto& [name, span] : {std::pair{"timeout", run.timeout},
                                   {"patience", run.patience},
                                   {"found_after", run.found_after}}) {
    json[name] = static_cast<double>(span.count()) / 1000;
  }
  return json;
}

}  // namespace

AgreedSettings settings_in_file(const SiteConfig& config) {
  const Security any{make_key_pair(), nullptr};  // no setting depends on the key
  SiteOptions run{.security = any};
  take_shared(config, run);
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
  settings.insert(settings.begin(), {"model", config.training.model});
  return settings;
}

SitePlan make_site_plan(const SiteConfig& config) {
  const study::TrainOptions& o = config.training;
  try {
    SitePlan plan{.run = read_identity(config),
                  .task = {},
                  .parameters = {},
                  .config = {},
                  .warnings = {},
                  .notices = {}};
    SiteOptions& run = plan.run;
    check_guarded(config, plan.warnings);
    check_options(o);
    check_result_files(config);
    take_shared(config, run);
    const auto scaling = study::scaling_of(o);
    const SharedScaling* const shared = scaling ? &*scaling : nullptr;
    const TaskFactory tasks = make_tasks(config, shared);
    run.scaling = tasks.data().scaling;
    plan.task = tasks.make(config.part.number - 1);
    if (!o.gradient_time.empty()) {
      plan.task = study::make_paced_task(std::move(plan.task), study::parse_pace(o.gradient_time),
                                         o.seed, config.part.number - 1);
    }
    if (const auto& data = tasks.data().dataset) {
      plan.warnings.insert(plan.warnings.end(), data->warnings().begin(), data->warnings().end());
      run.data = data->names();
      run.notes = notes_on(*data);
      run.units = units_of(*data);
    }
    if (config.export_file.ends_with(kOnnxFile)) {
      naming("export", [&] { check_onnx(plan.task->layout(), run.units); });
    }
    run.notes["sotto"] = SOTTO_VERSION;
    run.notes["model"] = tasks.options().model;
    run.notes["site"] = config.name;
    run.export_file = config.export_file;
    if (const auto examples = tasks.examples_per_node(); !examples.empty()) {
      plan.examples = examples[static_cast<std::size_t>(config.part.number - 1)];
    }
    run.compressor = naming("compressor", [&] {
      return make_compressor(run.compressor, ContractKind::contraction, host_ops(),
                             plan.task->layout())
          ->spec();
    });
    plan.eval_every = o.eval_every.value_or(
        std::max<Round>(plan.task->rounds_per_epoch() / run.communication_interval, 1));
    if (o.init.empty()) {
      run.init = "";
      plan.parameters.resize(plan.task->dimension());
      plan.task->initialize(plan.parameters, o.seed);
    } else {
      Start start = naming("init", [&] { return read_start(o.init, plan.task->layout()); });
      plan.parameters = std::move(start.parameters);
      run.init = model_digest(plan.parameters);
      if (!start.left_behind.empty()) {
        plan.warnings.push_back("init: " + start.left_behind);
      }
    }
    run.privacy = site_privacy(o, tasks, shared, run.rounds * run.communication_interval, plan);
    run.name = config.name;
    run.listen = config.listen;
    run.source = config.source;
    take_network(config, run, plan.warnings);
    plan.config = config_json(config, plan, tasks);
    return plan;
  } catch (const Error& error) {
    const std::string what = error.what();
    const bool named = what.starts_with(config.peers + ":") || what.starts_with(config.key + ":");
    throw Error(named ? what : config.places.blame(error));
  }
}

}  // namespace sotto::cli

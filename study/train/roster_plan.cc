#include <sotto/study/train/roster_plan.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/xxh3.h>
#include <sotto/optim/registry.h>
#include <sotto/sites/elastic/elastic_settings.h>
#include <sotto/sites/process/site_settings.h>
#include <sotto/sites/process/site_training.h>
#include <sotto/study/internal/setting_text.h>
#include <sotto/study/train/elastic_plan.h>
#include <sotto/study/train/paced_task.h>
#include <sotto/study/train/privacy_plan.h>
#include <sotto/study/train/train_checks.h>
#include <sotto/trainers/files/start_file.h>

namespace sotto::study {
namespace {

/// The settings of a whole run that these runs have, beside those of their nodes.
constexpr auto kOfRosterRuns =
    std::to_array<std::string_view>({"task", "model", "batch", "gradient-time", "init", "scaling",
                                     "epochs", "eval-every", "dump-parameters"});

/// Throws Error for the first of the settings that does nothing here.
void refuse_others(const std::vector<std::string>& given) {
  ElasticSettings nodes;
  SiteSettings site;
  std::vector<SettingGroup> of_nodes = settings_of(nodes);
  of_nodes.push_back(shared_settings_of(site));
  for (const std::string& setting : given) {
    const bool of_run = std::ranges::find(kOfRosterRuns, dashed(setting)) != kOfRosterRuns.end();
    if (!of_run && find_setting(of_nodes, setting) == nullptr) {
      throw Error(setting,
                  "a run whose nodes come and go does not have it: leave it out, or give a number "
                  "of nodes and no seeds");
    }
  }
}

/// The order of a node's examples is its own, and that of no other node.
std::uint64_t order_seed(std::uint64_t seed, std::string_view name) {
  return xxh3(std::as_bytes(std::span(name)), seed);
}

bool is_given(const std::vector<std::string>& given, std::string_view name) {
  return std::ranges::find(given, name) != given.end();
}

SiteSettings site_settings(const TrainOptions& o, Round steps, std::optional<double> timeout_s) {
  SiteSettings settings;
  settings.training = o;
  settings.seed = o.seed;
  settings.rounds = exchanges_in(steps, o);
  settings.timeout_s = timeout_s.value_or(settings.timeout_s);
  return settings;
}

TaskFactory make_tasks(const TrainOptions& o, std::uint64_t seed) {
  const auto scaling = scaling_of(o);
  TaskOptions task;
  task.model = o.model;
  task.batch = o.batch.value_or(task.batch);
  task.seed = seed;
  auto data = load_task(o.task, scaling ? &*scaling : nullptr);
  require_own_gradients(*data, "a node of a run whose nodes come and go");
  return {std::move(data), task};
}

/// What nodes must share beside the optimizer's settings.
AgreedSettings further_of(const TaskFactory& tasks, Round rounds) {
  return {{"task", tasks.data().spec},
          {"model", tasks.options().model},
          {"rounds", fmt::to_string(rounds)}};
}

/// Throws Error for an algorithm that such a run does not have.
void refuse_of_fixed_nodes(const std::string& algorithm) {
  if (!is_exchange(algorithm_info(algorithm).name)) {
    refuse("algorithm", algorithm,
           fmt::format("where nodes come and go they have one model by allreduce or qmean, or a "
                       "model each and exchange by {} or {}",
                       algorithms_of(sites::MixingKind::push_sum),
                       algorithms_of(sites::MixingKind::gossip)));
  }
}

/// Throws Error for a setting that runs of one model alone have.
void refuse_of_one_model(const ElasticSettings& settings) {
  if (!settings.state.empty()) {
    refuse("state", settings.state, "it is for allreduce and qmean: others keep nothing");
  }
  if (settings.save_every) {
    refuse("save_every", fmt::to_string(*settings.save_every),
           "it is for allreduce and qmean: others keep nothing");
  }
  if (settings.begin_again_after_s) {
    refuse("begin_again_after", fmt::to_string(*settings.begin_again_after_s),
           "it is for allreduce and qmean: others outlive any of their nodes");
  }
  if (settings.grace_s) {
    refuse("grace", fmt::to_string(*settings.grace_s),
           "it is for allreduce and qmean: others wait for nobody's gradient");
  }
  if (settings.wait_limit_s) {
    refuse("wait_limit", fmt::to_string(*settings.wait_limit_s),
           "it is for allreduce and qmean: steps of others never wait for a quorum");
  }
}

void take_model(const TrainOptions& o, RosterPlan& plan) {
  if (o.init.empty()) {
    plan.run.init = "";
    plan.parameters.resize(plan.task->dimension());
    plan.task->initialize(plan.parameters, o.seed);
    return;
  }
  Start start = read_start(o.init, plan.task->layout());
  plan.parameters = std::move(start.parameters);
  if (!start.left_behind.empty()) {
    plan.warnings.push_back("init: " + start.left_behind);
  }
}

}  // namespace

RosterPlan make_roster_plan(const TrainOptions& options, const std::vector<std::string>& given,
                            ElasticSettings settings) {
  refuse_others(given);
  TrainOptions o = options;
  if (!is_given(given, "algorithm")) {
    o.algorithm = SiteSettings().training.algorithm;
  }
  check_options(o);
  if (o.communication_interval < 1) {
    refuse("communication_interval", fmt::to_string(o.communication_interval),
           "it must be 1 or more steps");
  }
  RosterSettings& roster = settings.roster;
  roster.key = o.key;
  roster.insecure = o.insecure;
  const RosterOptions nodes = options_of(roster);
  const std::string name = elastic_node_name(settings);
  const TaskFactory tasks = make_tasks(o, order_seed(o.seed, name));
  RosterPlan plan{.run = options_by_roster(nodes, name),
                  .task = tasks.make(0),
                  .parameters = {},
                  .warnings = {},
                  .options = {},
                  .roster = {},
                  .task_options = tasks.options(),
                  .task_spec = tasks.data().spec};
  // An epoch is what the fewest nodes pass over together.
  const Round alone = plan.task->rounds_per_epoch();
  const auto per_epoch = std::max<Round>((alone + nodes.least - 1) / nodes.least, 1);
  const Round steps = count_rounds(o, per_epoch);
  // A run of fixed nodes has another timeout by default.
  const auto timeout_s =
      is_given(given, "timeout") ? std::optional(o.timeout_s) : std::optional<double>();
  if (has_one_model(o.algorithm)) {
    roster.name = name;
    plan.epochs = make_elastic_options(o, settings, steps, timeout_s);
    plan.epochs->further = further_of(tasks, steps);
  } else {
    refuse_of_fixed_nodes(o.algorithm);
    refuse_of_one_model(settings);
    take_settings(site_settings(o, steps, timeout_s), plan.run);
    plan.run.listen = roster.listen;
    plan.run.scaling = tasks.data().scaling;
    plan.run.further = further_of(tasks, plan.run.rounds);
  }
  plan.eval_every = o.eval_every ? exchanges_in(*o.eval_every, o)
                                 : std::max<Round>(per_epoch / o.communication_interval, 1);
  take_model(o, plan);
  if (!o.gradient_time.empty()) {
    plan.task = make_paced_task(std::move(plan.task), parse_pace(o.gradient_time), o.seed, 0);
  }
  if (nodes.key.is_open() && nodes.insecure) {
    plan.warnings.emplace_back(
        "without a key anybody who reaches this node can take part and read all of it: make one "
        "with `sotto keygen`, and give it to each node");
  }
  plan.options = std::move(o);
  plan.roster = std::move(roster);
  return plan;
}

}  // namespace sotto::study

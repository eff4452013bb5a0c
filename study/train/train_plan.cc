#include <sotto/study/train/train_plan.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/base/result_file.h>
#include <sotto/comm/transport.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/robust/attack.h>
#include <sotto/study/compute_spec.h>
#include <sotto/study/internal/node_data.h>
#include <sotto/study/rank_list.h>
#include <sotto/study/train/auto_compressor.h>
#include <sotto/study/train/batch_share.h>
#include <sotto/study/train/expert_plan.h>
#include <sotto/study/train/paced_task.h>
#include <sotto/study/train/privacy_plan.h>
#include <sotto/study/train/train_checks.h>
#include <sotto/study/train/train_options.h>
#include <sotto/study/units.h>
#include <sotto/topology/node_groups.h>
#include <sotto/trainers/files/start_file.h>
#include <sotto/trainers/launch/node_place.h>

namespace sotto::study {
namespace {

constexpr Round kMostEvaluations = 100;

/// Whether this process is one node of a job, as a launcher or the list of peers says.
NodePlace place_of(const TrainOptions& o) {
  if (o.local && !o.key.empty() && !o.peers.empty()) {
    throw Error("local", "with " + mention("key") + " and " + mention("peers") +
                             " this process is one of the nodes; leave one of them out");
  }
  NodePlace place = find_place(o, !o.local);
  if (!place.security && !place.node && !o.rendezvous.empty()) {
    refuse("rendezvous", o.rendezvous,
           "it is for launched jobs: set RANK and WORLD_SIZE, use mpirun or srun, or give " +
               mention("key") + " and " + mention("peers"));
  }
  return place;
}

/// The number of nodes: what was asked for, else what the launcher, the data or the graph says.
int asked_nodes(const TrainOptions& o, const TaskData& data,
                const std::optional<LaunchedNode>& launched) {
  if (launched) {
    if (o.nodes && *o.nodes != launched->nodes) {
      refuse("nodes", fmt::to_string(*o.nodes),
             fmt::format("{} say that the job has {}; leave ", launched->source,
                         counted(static_cast<std::uint64_t>(launched->nodes), "node")) +
                 mention("nodes") + " out, or run all nodes here with " + mention("local", "true"));
    }
    return launched->nodes;
  }
  if (o.nodes) {
    return *o.nodes;
  }
  if (const auto nodes = data.nodes()) {
    return *nodes;
  }
  if (!o.groups.empty()) {
    return NodeGroups(read_groups(o.groups)).nodes();
  }
  return fixes_nodes(o.topology) ? make_topology(o.topology, 0)->nodes() : kDefaultNodes;
}

/// Nodes measure their speeds where each is a process of its own.
void require_measurable(const TrainOptions& o, int nodes, bool launched) {
  if (o.batch_share == kShareBySpeed && nodes > 1 && !launched) {
    refuse("batch_share", o.batch_share,
           "here all nodes are on one machine, which is equally fast for all; give a speed for "
           "each, as 4,4,1, or launch each where it is to run");
  }
  if (o.batch_share == kShareBySpeed && o.resume) {
    refuse("batch_share", o.batch_share,
           "speeds that are measured anew would deal out other examples; give the batches that "
           "the run began with, as it said them");
  }
}

int count_nodes(const TrainOptions& o, const TaskData& data,
                const std::optional<LaunchedNode>& launched) {
  const int nodes = asked_nodes(o, data, launched);
  if (nodes < 1) {
    refuse("nodes", fmt::to_string(nodes), "at least one is needed");
  }
  return nodes;
}

std::vector<Rank> parse_byzantine(const TrainOptions& o, int nodes) {
  if (o.byzantine.empty()) {
    return {};
  }
  auto ranks = parse_ranks(o.byzantine, nodes);
  if (ranks.size() >= static_cast<std::size_t>(nodes)) {
    refuse("byzantine", o.byzantine, "one node at least must be honest");
  }
  return ranks;
}

TaskOptions task_options(const TrainOptions& o, int nodes) {
  TaskOptions task;
  task.model = o.model;
  task.partition = o.partition;
  task.batch = o.batch.value_or(task.batch);
  task.batches = batches_of_nodes(o, task.batch, nodes);
  task.nodes = nodes;
  task.seed = o.seed;
  task.deal = o.deal;
  task.clipping = example_clipping(o);
  task.byzantine = parse_byzantine(o, nodes);
  task.flip_labels = !o.attack.empty() && parse_attack(o.attack).kind == Attack::Kind::label_flip;
  return task;
}

/// How long a run is, and what each node's data have to do with it.
struct RunLength {
  Round asked = 0;   ///< rounds of the node with the most data, or with the least
  Round rounds = 0;  ///< as many of these as the privacy budget allows
  std::vector<Round> own_rounds;
  std::vector<double> weights;
  std::optional<PrivacyOptions> privacy;
};

RunLength length_of(const TrainOptions& o, const TaskFactory& tasks, Round per_epoch, bool launched,
                    const SharedScaling* scaling) {
  RunLength length;
  length.asked = count_rounds(o, per_epoch);
  length.own_rounds = rounds_of_nodes(o, tasks, length.asked);
  if (!length.own_rounds.empty()) {
    const auto [least, most] = std::ranges::minmax(length.own_rounds);
    length.asked = parse_join(o.join) == Join::stop ? least : most;
  }
  length.weights = weights_of_nodes(o, tasks, launched);
  length.rounds = length.asked;
  length.privacy = plan_privacy(o, tasks, length.rounds, scaling);
  return length;
}

/// The run apart from its optimizer, from this start on.
RunOptions run_options(const TrainOptions& o, const RunLength& length, Round per_epoch,
                       std::vector<float> start) {
  RunOptions run;
  run.weights = length.weights;
  run.rounds = length.rounds;
  run.eval_every = o.eval_every.value_or(std::max(per_epoch, length.rounds / kMostEvaluations));
  run.start = std::move(start);
  run.checkpoint = o.checkpoint;
  run.checkpoint_every = o.checkpoint_every.value_or(run.eval_every);
  run.resume = o.resume;
  run.dump_parameters = o.dump_parameters;
  return run;
}

OptimizerOptions optimizer_options(const TrainOptions& o, const NodePlace& place,
                                   const TaskFactory& tasks, const RunLength& length) {
  OptimizerSettings settings = o;
  settings.join.clear();  // all nodes know how long the data of each last; `job` has it
  if (!length.weights.empty()) {
    settings.weight.clear();
  }
  OptimizerOptions made = options_of(settings, length.rounds);
  if (!length.weights.empty()) {
    made.weight = length.weights.at(static_cast<std::size_t>(made.rank));
  }
  made.security = place.security;
  if (made.security) {
    made.bind = place.bind;
  }
  const TaskOptions& task = tasks.options();
  made.test.byzantine = task.byzantine;
  made.seed = o.seed;
  made.privacy = length.privacy;
  if (made.transport.empty()) {
    made.transport =
        default_transport(place.node.has_value(), made.security.has_value(), made.streams > 1);
  }
  made.nodes = task.nodes;
  made.rendezvous.clear();
  made.job = {{"task", tasks.data().spec},
              {"model", task.model},
              {"batch", task.batches.empty() ? fmt::to_string(task.batch)
                                             : fmt::to_string(fmt::join(task.batches, ","))},
              {"partition", task.partition}};
  if (!length.own_rounds.empty()) {
    made.job.push_back({"join", o.join});
  }
  if (!tasks.data().scaling.empty()) {
    made.job.push_back({"scaling", tasks.data().scaling.substr(0, kDigestShown)});
  }
  if (place.node) {
    made.rank = place.node->rank;
    made.rendezvous = o.rendezvous.empty() ? place.node->rendezvous : o.rendezvous;
  }
  return made;
}

void check_transport(const OptimizerOptions& optimizer,
                     const std::optional<LaunchedNode>& launched) {
  const TransportInfo& info = transport_info(optimizer.transport);
  if (!info.available) {
    refuse("transport", info.name,
           fmt::format("this build lacks it; build with {}, or take another (`sotto list`)",
                       info.needs));
  }
  if (launched && !info.processes) {
    refuse(
        "transport", info.name,
        fmt::format("{} say that this is one node of a launched job, and {} joins threads of one "
                    "process; choose another, or run all nodes here with ",
                    launched->source, info.name) +
            mention("local", "true"));
  }
}

/// The compressor that fits best into a budget of bytes; none where one is named.
std::optional<BudgetedCompressor> fitting_compressor(const TrainOptions& o,
                                                     const OptimizerOptions& optimizer, Task& task,
                                                     const std::vector<float>& given) {
  if (!compressor_budget(optimizer.compressor)) {
    return std::nullopt;
  }
  if (!o.deal) {
    refuse(
        "compressor", optimizer.compressor,
        "it is chosen by gradients, and a scenario of timing only takes none; name a compressor");
  }
  std::vector<float> start = given;
  if (start.empty()) {
    start.resize(task.dimension());
    task.initialize(start, optimizer.seed);
  }
  return choose_compressor(optimizer, task, start);
}

/// What an optimizer with these options warns of, and what it makes of their specifications.
struct CheckedOptions {
  OptimizerOptions options;
  std::vector<SettingText> warnings;
};

/// Builds an optimizer for its refusals.
CheckedOptions checked_options(OptimizerOptions options, const ParameterLayout& layout) {
  OptimizerOptions tried = options;
  tried.store = make_memory_store();
  tried.rank = tried.security ? tried.rank : 0;
  std::vector<float> parameters(dimension_of(layout));
  const Optimizer optimizer(tried, parameters, layout);
  options.compressor = optimizer.options().compressor;
  options.algorithm = optimizer.options().algorithm;
  options.test.attack = optimizer.options().test.attack;
  return {std::move(options), {optimizer.warnings().begin(), optimizer.warnings().end()}};
}

/// Settings that do nothing in this run, though they would in another.
void warn_of_idle(const TrainOptions& o, const TaskData& data, const OptimizerOptions& optimizer,
                  std::vector<SettingText>& warnings) {
  if (o.batch && !data.dataset) {
    warnings.push_back(mention("batch") +
                       fmt::format(" does nothing here: {} has exact gradients", data.spec));
  }
  if (o.delayed_gradient && !optimizer.overlap) {
    warnings.push_back(mention("delayed_gradient") + " hides nothing with " +
                       mention("overlap", "off") + ", and still delays");
  }
  if (o.bind != TrainOptions().bind && !transport_info(optimizer.transport).processes) {
    warnings.push_back(mention("bind") +
                       fmt::format(" does nothing here: {} listens nowhere", optimizer.transport));
  }
}

/// Warns of state that did not come with the start, and of a run that ends with a node's data.
void warn_of_start_and_end(const std::string& left_behind, const TrainOptions& o,
                           const RunLength& length, std::vector<SettingText>& warnings) {
  if (!left_behind.empty()) {
    warnings.push_back(mention("init") + ": " + left_behind);
  }
  const auto shortest = std::ranges::min_element(length.own_rounds) - length.own_rounds.begin();
  const bool others_go_on = std::ranges::count(length.own_rounds, length.rounds) <
                            static_cast<std::ptrdiff_t>(length.own_rounds.size());
  if (o.join == join_name(Join::stop) && others_go_on) {
    warnings.push_back(mention("join", o.join) +
                       fmt::format(": the run ends after {}, as node {} has no further data",
                                   counted(length.rounds, "round"), shortest));
  }
}

/// A freeze that the run is too short for. The freeze step counts exchanges.
void warn_of_late_freeze(const OptimizerOptions& optimizer, Round exchanges,
                         std::vector<SettingText>& warnings) {
  const auto& outer = optimizer.outer_step_rule;
  const double beta2 = outer ? outer->beta2 : optimizer.step_rule.beta2;
  const AlgorithmSpec algorithm = parse_algorithm(optimizer.algorithm);
  if (const auto freeze = algorithm.hyperparameters.optional_count(kFreezeStep)) {
    if (*freeze >= exchanges) {
      warnings.push_back(fmt::format("{}: the run ends after {}, before the variance is frozen",
                                     optimizer.algorithm, counted(exchanges, "exchange")));
    }
    return;
  }
  if (algorithm.info->earliest_freeze == nullptr) {
    return;
  }
  const Round earliest = algorithm.info->earliest_freeze(static_cast<float>(beta2));
  if (exchanges <= earliest) {
    warnings.push_back(fmt::format(
        "{} finds no freeze step before exchange {}, and the run has {}: it sends full precision "
        "throughout; say when, e.g. {}:freeze={}",
        optimizer.algorithm, earliest, exchanges, algorithm.info->name,
        usual_freeze_step(exchanges)));
  }
}

/// Local steps that never end, or are none.
void warn_of_local_steps(const OptimizerOptions& optimizer, Round rounds,
                         std::vector<SettingText>& warnings) {
  const Round interval = optimizer.communication_interval;
  if (interval > rounds && optimizer.nodes > 1) {
    warnings.push_back(
        mention("communication_interval", fmt::to_string(interval)) +
        fmt::format(": the run has {}, so that the nodes never talk", counted(rounds, "round")));
  }
  const auto& outer = optimizer.outer_step_rule;
  const bool after = optimizer.outer_after_mixing;
  if (interval == 1 && !after && outer && outer->rule == "sgd" && outer->momentum == 0) {
    const SettingText idle =
        outer->learning_rate == 1
            ? mention("outer_step_rule", "sgd") + " does nothing here"
            : mention("outer_lr") + " only multiplies " + mention("lr") + " here";
    warnings.push_back(idle + ": without " + mention("communication_interval") +
                       " each exchange follows one step");
  }
}

/// The model in the file that `init` names; an empty one without it.
Start start_of(const std::string& init, const ParameterLayout& layout) {
  if (init.empty()) {
    return {};
  }
  try {
    return read_start(init, layout);
  } catch (const Error& error) {
    throw error.about("init");
  }
}

/// What the user should know, though nothing is refused.
std::vector<SettingText> warnings_of(const TrainOptions& o, const TaskFactory& tasks,
                                     const RunLength& length, const CheckedOptions& checked,
                                     const std::string& left_behind) {
  const TaskData& data = tasks.data();
  std::vector<SettingText> warnings;
  if (data.dataset) {
    const auto& found = data.dataset->warnings();
    warnings.assign(found.begin(), found.end());
  }
  const OptimizerOptions& optimizer = checked.options;
  warnings.insert(warnings.end(), checked.warnings.begin(), checked.warnings.end());
  warn_of_start_and_end(left_behind, o, length, warnings);
  warn_of_privacy(o, length.privacy, tasks, length.asked, length.rounds, warnings);
  warn_of_idle(o, data, optimizer, warnings);
  warn_of_local_steps(optimizer, length.rounds, warnings);
  warn_of_late_freeze(optimizer, length.rounds / optimizer.communication_interval, warnings);
  return warnings;
}

/// What was decided for the user.
std::vector<SettingText> notices_of(const OptimizerOptions& optimizer,
                                    const std::optional<BudgetedCompressor>& fitted) {
  std::vector<SettingText> notices;
  if (const auto& groups = optimizer.groups; !groups.empty()) {
    notices.push_back(fmt::format("{} of {} train one model each, and {} exchanges between them",
                                  counted(groups.size(), "group"),
                                  counted(groups.front().size(), "node"), optimizer.algorithm));
  }
  if (fitted) {
    notices.push_back(
        fmt::format("{} is '{}': a message takes {} bytes, with an error of {:.3g} of its norm",
                    optimizer.compressor, fitted->spec, fitted->bytes, fitted->relative_error));
  }
  return notices;
}

}  // namespace

std::unique_ptr<Task> TrainPlan::task_of(Rank rank) const {
  auto task = unpaced_task_of(rank);
  if (!pace) {
    return task;
  }
  ComputeTime own = *pace;
  own.slowdown *= tasks->options().part_of_batch(rank);
  return make_paced_task(std::move(task), own, run.optimizer.seed, rank);
}

std::unique_ptr<Task> TrainPlan::unpaced_task_of(Rank rank) const {
  auto task = tasks->make(rank);
  if (run.optimizer.placed) {
    task = without_gradients(std::move(task));
  }
  const auto node = static_cast<std::size_t>(rank);
  return own_rounds.empty() ? std::move(task) : make_ending_task(std::move(task), own_rounds[node]);
}

RunSettings settings_of(const TrainPlan& plan) {
  return {plan.options, plan.run, plan.tasks->options(), plan.tasks->data().spec};
}

TrainPlan make_train_plan(const TrainOptions& options, std::shared_ptr<const TaskData> data) {
  check_options(options);
  check_writable("dump_parameters", options.dump_parameters);
  NodePlace place = place_of(options);
  const auto scaling = scaling_of(options);
  const SharedScaling* const shared = scaling ? &*scaling : nullptr;
  if (data == nullptr) {
    data = load_task(options.task, shared);
  }
  const int nodes = count_nodes(options, *data, place.node);
  if (nodes == 1) {
    place.node.reset();  // it has nobody to meet
  }
  require_measurable(options, nodes, place.node.has_value());
  const auto tasks = std::make_shared<const TaskFactory>(data, task_options(options, nodes));
  const auto sample = tasks->make(0);
  const Round per_epoch = sample->rounds_per_epoch();
  const RunLength length = length_of(options, *tasks, per_epoch, place.node.has_value(), shared);
  Start start = start_of(options.init, sample->layout());
  OptimizerOptions optimizer = optimizer_options(options, place, *tasks, length);
  optimizer.placed = placed_model(options, tasks);
  check_transport(optimizer, place.node);
  std::optional<ComputeTime> pace;
  if (!options.gradient_time.empty()) {
    pace = parse_pace(options.gradient_time);
  }
  const auto fitted = fitting_compressor(options, optimizer, *sample, start.parameters);
  std::vector<SettingText> notices = notices_of(optimizer, fitted);
  if (fitted) {
    optimizer.compressor = fitted->spec;
  }
  CheckedOptions checked = checked_options(std::move(optimizer), sample->layout());
  std::vector<SettingText> warnings =
      warnings_of(options, *tasks, length, checked, start.left_behind);
  TrainPlan plan = {.run = run_options(options, length, per_epoch, std::move(start.parameters)),
                    .tasks = tasks,
                    .own_rounds = length.own_rounds,
                    .pace = pace,
                    .launched = std::move(place.node),
                    .peers = place.security ? options.peers : "",
                    .options = options,
                    .warnings = std::move(warnings),
                    .notices = std::move(notices)};
  plan.run.optimizer = std::move(checked.options);
  return plan;
}

}  // namespace sotto::study

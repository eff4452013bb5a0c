#include <sotto/study/train/train_plan.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/comm/transport.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/robust/attack.h>
#include <sotto/study/compute_spec.h>
#include <sotto/study/internal/node_data.h>
#include <sotto/study/rank_list.h>
#include <sotto/study/train/auto_compressor.h>
#include <sotto/study/train/paced_task.h>
#include <sotto/study/train/privacy_plan.h>
#include <sotto/study/train/train_checks.h>
#include <sotto/study/train/train_options.h>
#include <sotto/study/units.h>
#include <sotto/topology/node_groups.h>
#include <sotto/trainers/files/result_file.h>
#include <sotto/trainers/files/start_file.h>
#include <sotto/trainers/launch/node_place.h>

namespace sotto::study {
namespace {

constexpr Round kMostEvaluations = 100;

/// Whether this process is one node of a job, as a launcher or the list of peers says.
void take_place(const TrainOptions& o, TrainPlan& plan) {
  if (o.local && !o.key.empty() && !o.peers.empty()) {
    throw Error("local", "with " + mention("key") + " and " + mention("peers") +
                             " this process is one of the nodes; leave one of them out");
  }
  NodePlace place = find_place(o, !o.local);
  plan.launched = std::move(place.node);
  if (place.security) {
    plan.peers = o.peers;
    plan.run.optimizer.security = std::move(place.security);
    plan.run.optimizer.bind = std::move(place.bind);
  } else if (!plan.launched && !o.rendezvous.empty()) {
    refuse("rendezvous", o.rendezvous,
           "it is for launched jobs: set RANK and WORLD_SIZE, use mpirun or srun, or give " +
               mention("key") + " and " + mention("peers"));
  }
}

/// The number of nodes: what was asked for, else what the launcher, the data or the graph says.
int count_nodes(const TrainOptions& o, const TaskData& data,
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

OptimizerOptions optimizer_options(const TrainOptions& o, const TrainPlan& plan, int nodes,
                                   Round rounds) {
  OptimizerSettings settings = o;
  settings.join.clear();  // all nodes know how long the data of each last
  if (!plan.run.weights.empty()) {
    settings.weight.clear();
  }
  OptimizerOptions made = options_of(settings, rounds);
  if (!plan.run.weights.empty()) {
    made.weight = plan.run.weights.at(static_cast<std::size_t>(made.rank));
  }
  made.security = plan.run.optimizer.security;
  if (made.security) {
    made.bind = plan.run.optimizer.bind;
  }
  made.byzantine = plan.tasks->options().byzantine;
  made.seed = o.seed;
  if (made.transport.empty()) {
    made.transport = default_transport(plan.launched.has_value(), made.security.has_value());
  }
  made.nodes = nodes;
  made.rendezvous.clear();
  const TaskOptions& task = plan.tasks->options();
  made.job = {{"task", plan.tasks->data().spec},
              {"model", task.model},
              {"batch", fmt::to_string(task.batch)},
              {"partition", task.partition}};
  if (!plan.tasks->data().scaling.empty()) {
    made.job.push_back({"scaling", plan.tasks->data().scaling.substr(0, kDigestShown)});
  }
  if (plan.launched) {
    made.rank = plan.launched->rank;
    made.rendezvous = o.rendezvous.empty() ? plan.launched->rendezvous : o.rendezvous;
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

/// Replaces a budget of bytes by the compressor that fits into it best.
void fit_compressor(const TrainOptions& o, Task& task, TrainPlan& plan) {
  OptimizerOptions& optimizer = plan.run.optimizer;
  if (!compressor_budget(optimizer.compressor)) {
    return;
  }
  if (!o.deal) {
    refuse(
        "compressor", optimizer.compressor,
        "it is chosen by gradients, and a scenario of timing only takes none; name a compressor");
  }
  std::vector<float> start = plan.run.start;
  if (start.empty()) {
    start.resize(task.dimension());
    task.initialize(start, optimizer.seed);
  }
  const BudgetedCompressor found = choose_compressor(optimizer, task, start);
  plan.notices.push_back(
      fmt::format("{} is '{}': a message takes {} bytes, with an error of {:.3g} of its norm",
                  optimizer.compressor, found.spec, found.bytes, found.relative_error));
  optimizer.compressor = found.spec;
}

/// Builds an optimizer for its refusals and warnings, and fills in what it resolved.
void resolve_options(TrainPlan& plan, const ParameterLayout& layout) {
  OptimizerOptions options = plan.run.optimizer;
  options.store = make_memory_store();
  options.rank = options.security ? options.rank : 0;
  std::vector<float> parameters(dimension_of(layout));
  const Optimizer optimizer(options, parameters, layout);
  plan.run.optimizer.compressor = optimizer.options().compressor;
  plan.run.optimizer.algorithm = optimizer.options().algorithm;
  plan.run.optimizer.attack = optimizer.options().attack;
  plan.warnings.assign(optimizer.warnings().begin(), optimizer.warnings().end());
}

/// Settings that do nothing in this run, though they would in another.
void warn_of_idle(const TrainOptions& o, const TaskData& data, TrainPlan& plan) {
  if (o.batch && data.quadratic) {
    plan.warnings.push_back(mention("batch") +
                            fmt::format(" does nothing here: {} has exact gradients", data.spec));
  }
  if (o.delayed_gradient && !plan.run.optimizer.overlap) {
    plan.warnings.push_back(mention("delayed_gradient") + " hides nothing with " +
                            mention("overlap", "off") + ", and still delays");
  }
  if (o.bind != TrainOptions().bind && !transport_info(plan.run.optimizer.transport).processes) {
    plan.warnings.push_back(mention("bind") + fmt::format(" does nothing here: {} listens nowhere",
                                                          plan.run.optimizer.transport));
  }
}

/// Warns of state that did not come with the start, and of a run that ends with a node's data.
void warn_of_start_and_end(const std::string& left_behind, const TrainOptions& o, TrainPlan& plan) {
  if (!left_behind.empty()) {
    plan.warnings.push_back(mention("init") + ": " + left_behind);
  }
  const auto shortest = std::ranges::min_element(plan.own_rounds) - plan.own_rounds.begin();
  const bool others_go_on = std::ranges::count(plan.own_rounds, plan.run.rounds) <
                            static_cast<std::ptrdiff_t>(plan.own_rounds.size());
  if (o.join == join_name(Join::stop) && others_go_on) {
    plan.warnings.push_back(mention("join", o.join) +
                            fmt::format(": the run ends after {}, as node {} has no further data",
                                        counted(plan.run.rounds, "round"), shortest));
  }
}

/// A freeze that the run is too short for. The freeze step counts exchanges.
void warn_of_late_freeze(const OptimizerOptions& optimizer, Round exchanges,
                         std::vector<Message>& warnings) {
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
                         std::vector<Message>& warnings) {
  const Round interval = optimizer.communication_interval;
  if (interval > rounds && optimizer.nodes > 1) {
    warnings.push_back(
        mention("communication_interval", fmt::to_string(interval)) +
        fmt::format(": the run has {}, so that the nodes never talk", counted(rounds, "round")));
  }
  const auto& outer = optimizer.outer_step_rule;
  const bool after = optimizer.outer_after_mixing;
  if (interval == 1 && !after && outer && outer->rule == "sgd" && outer->momentum == 0) {
    const Message idle = outer->learning_rate == 1
                             ? mention("outer_step_rule", "sgd") + " does nothing here"
                             : mention("outer_lr") + " only multiplies " + mention("lr") + " here";
    warnings.push_back(idle + ": without " + mention("communication_interval") +
                       " each exchange follows one step");
  }
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

/// Has the run start where `init` says; what stays behind.
std::string start_from(const std::string& init, const ParameterLayout& layout, RunOptions& run) {
  if (init.empty()) {
    return {};
  }
  try {
    Start start = read_start(init, layout);
    run.start = std::move(start.parameters);
    return start.left_behind;
  } catch (const Error& error) {
    throw error.about("init");
  }
}

/// Sets how many rounds the run has: those of the node with the most data, or the least.
void join_nodes(const TrainOptions& o, TrainPlan& plan) {
  plan.own_rounds = rounds_of_nodes(o, *plan.tasks, plan.run.rounds);
  if (!plan.own_rounds.empty()) {
    const auto [least, most] = std::ranges::minmax(plan.own_rounds);
    plan.run.rounds = parse_join(o.join) == Join::stop ? least : most;
  }
  plan.run.weights = weights_of_nodes(o, plan);
}

}  // namespace

std::unique_ptr<Task> TrainPlan::task_of(Rank rank) const {
  auto task = unpaced_task_of(rank);
  return pace ? make_paced_task(std::move(task), *pace, run.optimizer.seed, rank) : std::move(task);
}

std::unique_ptr<Task> TrainPlan::unpaced_task_of(Rank rank) const {
  auto task = tasks->make(rank);
  const auto node = static_cast<std::size_t>(rank);
  return own_rounds.empty() ? std::move(task) : make_ending_task(std::move(task), own_rounds[node]);
}

RunSettings settings_of(const TrainPlan& plan) {
  return {plan.options, plan.run, plan.tasks->options(), plan.tasks->data().spec};
}

TrainPlan make_train_plan(const TrainOptions& options) {
  check_options(options);
  check_writable("dump_parameters", options.dump_parameters);
  TrainPlan plan;
  take_place(options, plan);
  const auto scaling = scaling_of(options);
  const SharedScaling* const shared = scaling ? &*scaling : nullptr;
  const auto data = load_task(options.task, shared);
  const int nodes = count_nodes(options, *data, plan.launched);
  if (plan.launched && nodes == 1) {
    plan.launched.reset();  // it has nobody to meet
  }
  if (nodes < 1) {
    refuse("nodes", fmt::to_string(nodes), "at least one is needed");
  }
  TaskOptions task;
  task.model = options.model;
  task.partition = options.partition;
  task.batch = options.batch.value_or(task.batch);
  task.nodes = nodes;
  task.seed = options.seed;
  task.deal = options.deal;
  task.clipping = example_clipping(options);
  task.byzantine = parse_byzantine(options, nodes);
  task.flip_labels =
      !options.attack.empty() && parse_attack(options.attack).kind == Attack::Kind::label_flip;
  plan.tasks = std::make_shared<const TaskFactory>(data, task);
  const auto sample = plan.tasks->make(0);

  plan.run.rounds = count_rounds(options, sample->rounds_per_epoch());
  join_nodes(options, plan);
  const Round asked = plan.run.rounds;
  const auto privacy = plan_privacy(options, *plan.tasks, plan.run.rounds, shared);
  plan.run.eval_every = options.eval_every.value_or(
      std::max(sample->rounds_per_epoch(), plan.run.rounds / kMostEvaluations));
  plan.run.checkpoint = options.checkpoint;
  plan.run.checkpoint_every = options.checkpoint_every.value_or(plan.run.eval_every);
  plan.run.resume = options.resume;
  plan.run.dump_parameters = options.dump_parameters;
  const std::string left_behind = start_from(options.init, sample->layout(), plan.run);
  plan.run.optimizer = optimizer_options(options, plan, nodes, plan.run.rounds);
  plan.run.optimizer.privacy = privacy;
  check_transport(plan.run.optimizer, plan.launched);
  if (!options.gradient_time.empty()) {
    plan.pace = parse_pace(options.gradient_time);
  }
  if (const auto& groups = plan.run.optimizer.groups; !groups.empty()) {
    plan.notices.push_back(
        fmt::format("{} of {} train one model each, and {} exchanges between them",
                    counted(groups.size(), "group"), counted(groups.front().size(), "node"),
                    plan.run.optimizer.algorithm));
  }
  fit_compressor(options, *sample, plan);
  resolve_options(plan, sample->layout());
  if (data->dataset) {
    const auto& warnings = data->dataset->warnings();
    plan.warnings.insert(plan.warnings.begin(), warnings.begin(), warnings.end());
  }
  warn_of_start_and_end(left_behind, options, plan);
  warn_of_privacy(options, privacy, *plan.tasks, asked, plan.run.rounds, plan.warnings);
  warn_of_idle(options, *data, plan);
  warn_of_local_steps(plan.run.optimizer, plan.run.rounds, plan.warnings);
  warn_of_late_freeze(plan.run.optimizer,
                      plan.run.rounds / plan.run.optimizer.communication_interval, plan.warnings);
  plan.options = options;
  return plan;
}

}  // namespace sotto::study

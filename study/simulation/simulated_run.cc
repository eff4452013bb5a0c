#include <sotto/study/simulation/simulated_run.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/sim/timing_job.h>
#include <sotto/study/internal/happenings.h>
#include <sotto/study/internal/run_history.h>
#include <sotto/study/internal/scenario_spelling.h>
#include <sotto/study/scenario/batch_speeds.h>
#include <sotto/study/scenario/validated_range.h>
#include <sotto/study/simulation/job_nodes.h>
#include <sotto/study/simulation/step_work.h>
#include <sotto/study/simulation/stretches.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/study/units.h>
#include <sotto/trainers/placed_model.h>

namespace sotto::study {
namespace {

class SimulatedJob {
 public:
  SimulatedJob(const Scenario& scenario, const RunSpec& run, const SimulationRequest& request);

  /// Runs to the end, or until it is asked to stop.
  SimulatedRun run();

 private:
  std::vector<std::unique_ptr<Algorithm>> make_algorithms();
  SimulatorOptions options(int threads) const;
  SimulatorHooks hooks();
  void watch_phases(SimulatorHooks& hooks);
  SimulationResult result(SimulationReport report, const Platform& platform) const;
  /// Digests of all nodes' models.
  std::vector<std::string> model_digests() const;

  const Scenario& scenario_;
  const std::string name_;
  const SimulationRequest& request_;
  bool ended_ = false;    ///< as request_.enough said
  bool stopped_ = false;  ///< as request_.stop said
  std::shared_ptr<const TrainPlan> plan_;
  std::shared_ptr<const Topology> topology_;
  std::vector<std::vector<float>> parameters_;
  double step_work_ = 0;  ///< work of a round besides its gradient, as a part of the gradient's
  TimingJob timing_job_;  ///< of timing only
  std::vector<std::unique_ptr<Task>> tasks_;
  RunHistory history_;
  std::optional<Simulator> simulator_;
  std::unique_ptr<Observer> observer_;  ///< null where nobody looks
  std::set<std::string> warned_;        ///< of what came up while it runs
  std::vector<std::string> warnings_;   ///< those of the plan, and these, in their order
  std::optional<Timeline> timeline_;
  std::optional<StretchJoiner> joiner_;  ///< where somebody watches the phases
};

std::vector<std::pair<Rank, Rank>> pairs_of(
    const std::vector<std::unique_ptr<Algorithm>>& algorithms) {
  std::vector<std::pair<Rank, Rank>> pairs;
  for (std::size_t from = 0; from < algorithms.size(); ++from) {
    for (const Rank to : algorithms[from]->peers().to) {
      pairs.emplace_back(static_cast<Rank>(from), to);
    }
  }
  return pairs;
}

std::vector<std::pair<Rank, Rank>> pairs_of(const std::vector<EdgeReport>& edges) {
  std::vector<std::pair<Rank, Rank>> pairs;
  pairs.reserve(edges.size());
  for (const EdgeReport& edge : edges) {
    pairs.emplace_back(edge.from, edge.to);
  }
  return pairs;
}

/// The graph along which nodes of groups send, for pictures.
std::shared_ptr<const Topology> graph_of(const std::vector<std::pair<Rank, Rank>>& pairs,
                                         int nodes) {
  std::vector<WeightedEdge> edges;
  edges.reserve(pairs.size());
  for (const auto& [from, to] : pairs) {
    edges.push_back({.from = from, .to = to, .weight = 1.0 / nodes});
  }
  return std::make_shared<const Topology>("groups", nodes,
                                          std::vector<std::vector<WeightedEdge>>{std::move(edges)});
}

/// What the plan of a run warns of, as the scenario's file spells settings.
std::vector<std::string> in_words_of(const Scenario& scenario, const RunSpec& run,
                                     const std::vector<SettingText>& warnings) {
  const ScenarioSpelling spelling(scenario, run);
  std::vector<std::string> texts;
  texts.reserve(warnings.size());
  for (const SettingText& warning : warnings) {
    texts.push_back(warning.text(spelling));
  }
  return texts;
}

SimulatedJob::SimulatedJob(const Scenario& scenario, const RunSpec& run,
                           const SimulationRequest& request)
    : scenario_(scenario),
      name_(request.name.empty() ? run.shown() : request.name),
      request_(request),
      plan_(std::make_shared<const TrainPlan>(make_train_plan(options_of(scenario, run)))),
      history_(scenario, *plan_, request.by_worst,
               [this](std::size_t node) { return simulator_->node(node).parameters(); }),
      warnings_(in_words_of(scenario, run, plan_->warnings)) {
  std::ranges::move(outside_validated_range(scenario), std::back_inserter(warnings_));
  if (request.observer) {
    observer_ = request.observer(plan_->run.rounds);
  }
  check_sampling(scenario, *plan_);
  auto algorithms = make_algorithms();
  const auto pairs = pairs_of(algorithms);
  if (!plan_->run.optimizer.groups.empty()) {
    topology_ = graph_of(pairs, scenario.nodes);
  }
  const Platform platform = scenario.platform(pairs);
  GradientFunction gradient = timing_job_.gradient;
  if (!scenario.timing_only) {
    for (Rank rank = 0; rank < scenario.nodes; ++rank) {
      tasks_.push_back(plan_->unpaced_task_of(rank));
    }
    gradient = [this](Rank rank, Round round, std::span<const float> x, std::span<float> g) {
      (void)tasks_[static_cast<std::size_t>(rank)]->loss_and_gradient(round, x, g);
    };
  }
  if (request.timeline) {
    timeline_.emplace(scenario.nodes, plan_->run.rounds, happenings_of(scenario));
  }
  simulator_.emplace(platform, options(request.threads), std::move(algorithms), gradient, hooks());
}

std::vector<std::unique_ptr<Algorithm>> SimulatedJob::make_algorithms() {
  const JobNodes job = job_nodes(*plan_, plan_->run.optimizer, std::make_shared<FrameRoom>());
  topology_ = job.topology;
  if (request_.counts_products) {
    step_work_ = step_work(*plan_, job.layout)
                     .value_or(StepWork{})
                     .of_round(plan_->run.optimizer.communication_interval);
  }
  if (scenario_.timing_only) {
    timing_job_ = make_timing_job(job, plan_->run.optimizer, true);
    return std::move(timing_job_.nodes);
  }
  parameters_.assign(static_cast<std::size_t>(scenario_.nodes), job.start);
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  for (std::size_t rank = 0; rank < parameters_.size(); ++rank) {
    algorithms.push_back(job.make(static_cast<Rank>(rank), parameters_[rank]));
  }
  return algorithms;
}

SimulatorOptions SimulatedJob::options(int threads) const {
  SimulatorOptions options;
  options.rounds = plan_->run.rounds;
  options.nodes = shared_node_specs(scenario_, plan_->tasks->options());
  add_step_work(step_work_, options.nodes);
  add_second_decoding(*plan_, options.nodes);
  if (std::ranges::adjacent_find(options.nodes, std::not_equal_to<>()) == options.nodes.end()) {
    options.nodes.resize(1);
    options.nodes.shrink_to_fit();  // there may be a million of them
  }
  options.network = scenario_.network;
  options.transport = scenario_.transport;
  options.events = scenario_.events;
  options.availability = scenario_.availability;
  if (scenario_.sampling.clients != nullptr) {
    options.sampling = scenario_.sampling;
    options.sampling.every = plan_->run.optimizer.communication_interval;
    options.sampling.model_bytes = sizeof(float) * static_cast<double>(history_.dimension());
  }
  options.overlap = plan_->run.optimizer.overlap;
  options.timeout = std::chrono::nanoseconds(plan_->run.optimizer.timeout).count();
  options.seed = plan_->run.optimizer.seed;
  options.threads = threads;
  return options;
}

SimulatorHooks SimulatedJob::hooks() {
  SimulatorHooks hooks;
  hooks.trace = [this](const TraceEntry& entry) { history_.count(entry); };
  hooks.round_finished = [this](Rank node, Round round, SimTime time) {
    if (timeline_) {
      timeline_->finished(node, round, time);
    }
    history_.finished(node, round + 1);
  };
  if (!scenario_.timing_only) {
    hooks.model_changes = [this](Rank node) { history_.model_changes(node); };
  }
  hooks.round_finished_by_all = [this](Round round, SimTime time) {
    if (const HistoryPoint* const point = history_.finished_by_all(round + 1, time)) {
      ended_ = request_.enough && request_.enough(*point);
    }
    if (observer_ != nullptr) {
      observer_->round_done(round + 1);
    }
    stopped_ = stopped_ || (request_.stop && request_.stop());
    return !ended_ && !stopped_;
  };
  if (!scenario_.timing_only) {
    hooks.warning = [this](Rank /*node*/, const std::string& text) {
      if (!warned_.insert(text).second) {
        return;  // another node has said so
      }
      warnings_.push_back(text);
      if (observer_ != nullptr) {
        observer_->warning(fmt::format("{}: {}", name_, text));
      }
    };
  }
  if (timeline_ || request_.watcher != nullptr) {
    watch_phases(hooks);
  }
  return hooks;
}

void SimulatedJob::watch_phases(SimulatorHooks& hooks) {
  joiner_.emplace(scenario_.nodes, [this](const Stretch& stretch) {
    if (timeline_) {
      timeline_->add(stretch);
    }
    if (request_.watcher != nullptr) {
      request_.watcher->add(stretch);
    }
  });
  hooks.phase = [this](Rank node, Phase phase, SimTime from, SimTime until) {
    joiner_->phase(node, phase, from, until);
  };
  hooks.trace = [this, count = hooks.trace](const TraceEntry& entry) {
    count(entry);
    joiner_->entry(entry);
    if (request_.watcher != nullptr) {
      request_.watcher->add(entry);
    }
  };
}

SimulatedRun SimulatedJob::run() {
  if (request_.watcher != nullptr) {
    request_.watcher->begin_run(name_);
  }
  SimulationReport found = simulator_->run();
  if (joiner_) {
    joiner_->flush();
  }
  if (timeline_) {
    timeline_->finish(found.end);
  }
  if (request_.watcher != nullptr) {
    request_.watcher->end_run(found.end, marks_of(scenario_), faults_of(found));
  }
  SimulatedRun run;
  run.graph = topology_;
  // Made anew: of very many nodes the run's own would have taken a lot of room meanwhile.
  const Platform platform = scenario_.platform(pairs_of(found.edges));
  if (timeline_) {
    run.loads = edge_loads(found, platform);
    run.node_loads = node_loads(found, platform);
    run.timeline = std::move(timeline_);
  }
  run.result = result(std::move(found), platform);
  return run;
}

std::vector<std::string> SimulatedJob::model_digests() const {
  std::vector<std::string> digests;
  std::vector<std::vector<float>> whole;  // where nodes have tensors of their own
  const auto& placed = plan_->run.optimizer.placed;
  for (std::size_t node = 0; node < parameters_.size() && placed; ++node) {
    const auto x = simulator_->node(node).parameters();
    whole.emplace_back(x.begin(), x.end());
  }
  if (placed) {
    bring_together(*placed, whole);
  }
  for (std::size_t node = 0; node < parameters_.size(); ++node) {
    const auto x =
        placed ? std::span<const float>(whole[node]) : simulator_->node(node).parameters();
    digests.push_back(sha256_hex(std::as_bytes(x)));
  }
  return digests;
}

SimulationResult SimulatedJob::result(SimulationReport report, const Platform& platform) const {
  SimulationResult made;
  made.settings = std::make_shared<const RunSettings>(settings_of(*plan_));
  made.nodes = scenario_.nodes;
  made.bytes_sent.resize(static_cast<std::size_t>(scenario_.nodes));
  for (const EdgeReport& edge : report.edges) {
    made.bytes_sent[static_cast<std::size_t>(edge.from)] += edge.bytes;
  }
  for (const NodeReport& node : report.nodes) {
    made.rounds = std::max(made.rounds, node.rounds);
  }
  made.parameters_sha256 = model_digests();
  made.virtual_s = exact_seconds(report.end);
  history_.fill(made, report.end);
  for (const ScenarioMark& mark : marks_of(scenario_)) {
    (mark.at > report.end ? made.unseen : made.seen).push_back(mark);
  }
  made.by_worst = request_.by_worst;
  made.shares = phase_shares(report);
  made.staleness = staleness_of(report, scenario_.timing_only);
  made.links = busiest_links(report, platform);
  made.interrupted = stopped_;
  made.faults = faults_of(report);
  made.congestion = scenario_.network.initial_window_bytes < kUnlimited
                        ? congestion_name(scenario_.network.congestion)
                        : "";
  made.warnings = warnings_;
  made.messages = report.messages;
  made.trace_sha256 = report.trace_sha256;
  made.edges = std::move(report.edges);
  return made;
}

}  // namespace

void check_sampling(const Scenario& scenario, const TrainPlan& plan) {
  if (scenario.sampling.clients != nullptr &&
      algorithm_info(plan.run.optimizer.algorithm).name != "allreduce") {
    throw Error(
        "clients are drawn for each exchange (capacity.draw = \"each-exchange\"), which needs one "
        "model that all nodes have afterwards: only allreduce has it");
  }
  if (scenario.sampling.clients != nullptr && plan.run.optimizer.placed) {
    throw Error(plan.run.optimizer.placed->kind == PlacedModel::Kind::experts
                    ? "clients are drawn for each exchange (capacity.draw = \"each-exchange\"), "
                      "which needs "
                      "one model that all nodes have afterwards: experts at nodes are at one each"
                    : "clients are drawn for each exchange (capacity.draw = \"each-exchange\"), "
                      "and a graph "
                      "in parts needs all of its parts in every round");
  }
}

int gradient_threads(std::uint64_t asked) {
  return static_cast<int>(asked > 0 ? asked : std::max(1U, std::thread::hardware_concurrency()));
}

SimulatedRun simulate_run(const Scenario& scenario, const RunSpec& run,
                          const SimulationRequest& request) {
  return SimulatedJob(scenario, run, request).run();
}

}  // namespace sotto::study

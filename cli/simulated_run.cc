#include "simulated_run.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/optim/registry.h>
#include <sotto/sim/rehearsal.h>
#include <sotto/trainers/algorithm_setup.h>
#include <sotto/trainers/model_sum.h>

#include "run_words.h"
#include "signals.h"
#include "train_plan.h"

namespace sotto::cli {
namespace {

constexpr std::size_t kLinksShown = 64;

/// The models of one round, as the nodes come to its end at different times.
struct Gathering {
  std::vector<std::vector<float>> models;
  double bytes = 0;  ///< sent by then, over all nodes
};

class SimulatedJob {
 public:
  SimulatedJob(const Scenario& scenario, const std::string& words, int threads);

  /// Runs to the end, or until Ctrl-C.
  Result<Json> run(TrainReport& report);
  const TrainPlan& plan() const { return plan_; }

 private:
  std::vector<std::unique_ptr<Algorithm>> make_algorithms();
  SimulatorOptions options(int threads) const;
  SimulatorHooks hooks();
  bool due(Round done) const;
  void take_model(Rank node, Round done);
  void evaluate(Round done, SimTime time);
  HistoryPoint inspect(const Gathering& gathering, Round done, SimTime time);
  Json result(const SimulationReport& report) const;

  const Scenario& scenario_;
  TrainPlan plan_;
  std::shared_ptr<const Topology> topology_;
  std::vector<std::vector<float>> parameters_;
  std::vector<std::unique_ptr<Task>> tasks_;
  /// Evaluates; a task belongs to one thread, and node 0's may be taking a gradient meanwhile.
  std::unique_ptr<Task> judge_;
  std::optional<Platform> platform_;
  std::optional<Simulator> simulator_;
  RunHooks watched_;
  std::vector<double> sent_;  ///< by node, so far
  std::map<Round, Gathering> gatherings_;
  std::vector<HistoryPoint> history_;
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

SimulatedJob::SimulatedJob(const Scenario& scenario, const std::string& words, int threads)
    : scenario_(scenario),
      plan_(make_train_plan(parse_run(words, scenario.task))),
      topology_(make_job_topology(plan_.run.optimizer)),
      judge_(plan_.tasks->make(0)),
      sent_(static_cast<std::size_t>(scenario.nodes)) {
  auto algorithms = make_algorithms();
  platform_ = scenario.platform(pairs_of(algorithms));
  GradientFunction gradient;
  if (!scenario.timing_only) {
    for (Rank rank = 0; rank < scenario.nodes; ++rank) {
      tasks_.push_back(plan_.tasks->make(rank));
    }
    gradient = [this](Rank rank, Round round, std::span<const float> x, std::span<float> g) {
      (void)tasks_[static_cast<std::size_t>(rank)]->loss_and_gradient(round, x, g);
    };
  }
  simulator_.emplace(*platform_, options(threads), std::move(algorithms), gradient, hooks());
}

std::vector<std::unique_ptr<Algorithm>> SimulatedJob::make_algorithms() {
  OptimizerOptions options = plan_.run.optimizer;
  const auto sample = plan_.tasks->make(0);
  std::vector<float> start = plan_.run.start;
  if (start.empty()) {
    start.resize(sample->dimension());
    sample->initialize(start, options.seed);
  }
  const auto make = [&](Rank rank, std::span<float> x) {
    options.rank = rank;
    return make_algorithm(options.algorithm,
                          make_algorithm_setup(options, x, sample->layout(), topology_));
  };
  if (scenario_.timing_only) {
    const auto first = make(0, start);
    return make_rehearsals(rehearsal_shape(*first), topology_);
  }
  parameters_.assign(static_cast<std::size_t>(scenario_.nodes), start);
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  for (std::size_t rank = 0; rank < parameters_.size(); ++rank) {
    algorithms.push_back(make(static_cast<Rank>(rank), parameters_[rank]));
  }
  return algorithms;
}

SimulatorOptions SimulatedJob::options(int threads) const {
  SimulatorOptions options;
  options.rounds = plan_.run.rounds;
  options.nodes = scenario_.paces;
  options.events = scenario_.events;
  options.overlap = plan_.run.optimizer.overlap;
  options.timeout = std::chrono::nanoseconds(plan_.run.optimizer.timeout).count();
  options.seed = plan_.run.optimizer.seed;
  options.threads = threads;
  return options;
}

SimulatorHooks SimulatedJob::hooks() {
  SimulatorHooks hooks;
  hooks.trace = [this](const TraceEntry& entry) {
    if (entry.kind == TraceEntry::Kind::sent) {
      sent_[static_cast<std::size_t>(entry.node)] += static_cast<double>(entry.bytes);
    }
  };
  hooks.round_finished = [this](Rank node, Round round, SimTime /*time*/) {
    if (due(round + 1)) {
      take_model(node, round + 1);
    }
  };
  hooks.round_finished_by_all = [this](Round round, SimTime time) {
    if (due(round + 1)) {
      evaluate(round + 1, time);
    }
    if (watched_.round_done) {
      watched_.round_done(round + 1);
    }
    return !stop_requested();
  };
  return hooks;
}

bool SimulatedJob::due(Round done) const {
  const Round every = plan_.run.eval_every;
  return done == plan_.run.rounds || (every > 0 && done % every == 0);
}

void SimulatedJob::take_model(Rank node, Round done) {
  Gathering& gathering = gatherings_[done];
  gathering.bytes += sent_[static_cast<std::size_t>(node)];
  gathering.models.resize(static_cast<std::size_t>(scenario_.nodes));
  if (!scenario_.timing_only) {
    const auto x = simulator_->node(static_cast<std::size_t>(node)).parameters();
    gathering.models[static_cast<std::size_t>(node)].assign(x.begin(), x.end());
  }
}

void SimulatedJob::evaluate(Round done, SimTime time) {
  const auto gathering = gatherings_.find(done);
  if (gathering != gatherings_.end()) {
    history_.push_back(inspect(gathering->second, done, time));
    gatherings_.erase(gathering);
  }
}

/// The averaged model of those nodes that came to the round's end.
HistoryPoint SimulatedJob::inspect(const Gathering& gathering, Round done, SimTime time) {
  HistoryPoint point;
  point.round = done;
  point.time_s = to_seconds(time);
  point.bytes_per_node = gathering.bytes / scenario_.nodes;
  point.loss = std::numeric_limits<double>::quiet_NaN();
  if (scenario_.timing_only) {
    return point;
  }
  ModelSum sum;
  std::vector<std::span<const float>> present;
  for (const std::vector<float>& model : gathering.models) {
    if (!model.empty()) {
      present.emplace_back(model);
      sum.add(model);
    }
  }
  const std::vector<float> mean = sum.mean();
  for (const auto& model : present) {
    point.consensus_distance += squared_distance(model, mean) / static_cast<double>(present.size());
  }
  const Evaluation found = judge_->evaluate(mean);
  point.loss = found.loss;
  point.accuracy = found.accuracy;
  return point;
}

Result<Json> SimulatedJob::run(TrainReport& report) {
  catch_stop_signals();
  watched_ = report.hooks(stop_requested());
  const SimulationReport found = simulator_->run();
  if (stop_requested()) {
    return Status(Fault::unexpected, std::string(kStopped));
  }
  return result(found);
}

Json fractions_of(const SimulationReport& report) {
  double whole = 0;
  double compute = 0;
  double codec = 0;
  double wire = 0;
  double idle = 0;
  for (const NodeReport& node : report.nodes) {
    whole += static_cast<double>(node.end - node.start);
    compute += static_cast<double>(node.compute);
    codec += static_cast<double>(node.codec);
    wire += static_cast<double>(node.wire);
    idle += static_cast<double>(node.idle);
  }
  whole = whole > 0 ? whole : 1;
  return {{"compute", compute / whole},
          {"codec", codec / whole},
          {"wire", wire / whole},
          {"idle", idle / whole}};
}

/// The links that are busiest, by what they carried of what they could have.
Json links_of(const SimulationReport& report, const Platform& platform) {
  std::vector<LinkReport> links = report.links;
  std::stable_sort(links.begin(), links.end(), [](const LinkReport& a, const LinkReport& b) {
    return a.utilisation > b.utilisation;
  });
  links.resize(std::min(links.size(), kLinksShown));
  Json shown = Json::array();
  for (const LinkReport& link : links) {
    shown.push_back({{"name", platform.links()[link.link].name},
                     {"bytes", link.bytes},
                     {"utilisation", link.utilisation}});
  }
  return shown;
}

Json faults_of(const SimulationReport& report) {
  Json faults = Json::array();
  for (std::size_t node = 0; node < report.nodes.size(); ++node) {
    if (!report.nodes[node].status.ok()) {
      faults.push_back({{"node", node}, {"fault", report.nodes[node].status.message()}});
    }
  }
  return faults;
}

Json time_to_target(const Scenario& scenario, const std::vector<HistoryPoint>& history) {
  if (!scenario.target_accuracy && !scenario.target_loss) {
    return nullptr;
  }
  for (const HistoryPoint& point : history) {
    if ((!scenario.target_accuracy || point.accuracy >= *scenario.target_accuracy) &&
        (!scenario.target_loss || point.loss <= *scenario.target_loss)) {
      return point.time_s;
    }
  }
  return nullptr;
}

Json SimulatedJob::result(const SimulationReport& report) const {
  std::vector<std::uint64_t> bytes(static_cast<std::size_t>(scenario_.nodes));
  Json edges = Json::array();
  for (const EdgeReport& edge : report.edges) {
    bytes[static_cast<std::size_t>(edge.from)] += edge.bytes;
    edges.push_back(
        {{"from", edge.from}, {"to", edge.to}, {"bytes", edge.bytes}, {"frames", edge.frames}});
  }
  Json history = Json::array();
  for (const HistoryPoint& point : history_) {
    history.push_back({{"round", point.round},
                       {"virtual_s", point.time_s},
                       {"loss", point.loss},
                       {"accuracy", point.accuracy},
                       {"consensus_distance", point.consensus_distance},
                       {"bytes_per_node", point.bytes_per_node}});
  }
  Json last = nullptr;
  if (!history_.empty()) {
    last = {{"loss", history_.back().loss},
            {"accuracy", history_.back().accuracy},
            {"consensus_distance", history_.back().consensus_distance}};
  }
  Round rounds = 0;
  for (const NodeReport& node : report.nodes) {
    rounds = std::max(rounds, node.rounds);
  }
  Json digests = Json::array();
  for (std::size_t node = 0; node < parameters_.size(); ++node) {
    digests.push_back(sha256_hex(std::as_bytes(simulator_->node(node).parameters())));
  }
  const OptimizerOptions& used = plan_.run.optimizer;
  return {{"algorithm", used.algorithm},
          {"compressor", used.compressor},
          {"topology", used.topology},
          {"nodes", scenario_.nodes},
          {"rounds", rounds},
          {"virtual_s", to_seconds(report.end)},
          {"time_to_target_s", time_to_target(scenario_, history_)},
          {"bytes_sent_per_node", bytes},
          {"final", last},
          {"history", history},
          {"fractions", fractions_of(report)},
          {"links", links_of(report, *platform_)},
          {"bytes_per_edge", edges},
          {"faults", faults_of(report)},
          {"messages", report.messages},
          {"trace_sha256", report.trace_sha256},
          {"parameters_sha256", digests},
          {"config", plan_.config}};
}

}  // namespace

Result<Json> simulate_run(const Scenario& scenario, const std::string& words, int threads,
                          const Output& output) {
  SimulatedJob job(scenario, words, threads);
  CommonOptions silent;
  silent.quiet = true;
  const Output nowhere(silent);
  TrainReport report(nowhere, !output.talks(), job.plan().run.rounds);
  return job.run(report);
}

}  // namespace sotto::cli

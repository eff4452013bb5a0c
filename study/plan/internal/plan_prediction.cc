#include <sotto/study/plan/internal/plan_prediction.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/factors.h>
#include <sotto/compress/low_rank.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/study/plan/internal/plan_pattern.h>
#include <sotto/study/scenario/batch_speeds.h>
#include <sotto/topology/registry.h>
#include <sotto/topology/spectrum.h>
#include <sotto/trainers/algorithm_setup.h>

namespace sotto::study {
namespace {

/// n nodes that reduce send 2 (n − 1) n messages a round.
constexpr int kMostToAll = 500;
/// Exchanges are tried in this many fragments, each applied as late as it may be.
constexpr std::uint32_t kFragments = 2;
constexpr Round kShortestStreamed = 2 * kFragments;

/// Settings of a run that decide what is exchanged, and when.
constexpr std::string_view kOfExchanges[] = {
    "algorithm", "compressor", "topology",   "communication-interval",
    "lazy",      "fragments",  "sync-delay", "sync-mix"};

/// Whether a setting is of the outer rule, which steps where nodes exchange.
bool of_outer_rule(const RunSetting& setting) { return setting.name.starts_with("outer-"); }

/// Notes the settings of the candidate's run that decide how a node steps.
void note_steps(Candidate& candidate) {
  candidate.step_rule.clear();
  candidate.outer_rule.clear();
  for (const RunSetting& setting : candidate.run.settings) {
    if (std::ranges::find(kOfExchanges, setting.name) == std::end(kOfExchanges)) {
      std::string& steps = of_outer_rule(setting) ? candidate.outer_rule : candidate.step_rule;
      steps += fmt::format("{}{}={}", steps.empty() ? "" : " ", setting.name, setting.value);
    }
  }
}

/// Throws Error where nodes that all reach each other are too many to plan with.
void require_few(bool to_all, int nodes) {
  if (to_all && nodes > kMostToAll) {
    throw Error(fmt::format(
        "{} nodes that all reach each other send too many messages to plan with; {} may", nodes,
        kMostToAll));
  }
}

/// How nodes of a scenario compute and exchange in a planned run.
JobTiming timing_of(const Scenario& scenario, const TrainPlan& plan) {
  const OptimizerOptions& options = plan.run.optimizer;
  auto nodes = shared_node_specs(scenario, plan.tasks->options());
  add_second_decoding(plan, nodes);
  return {.nodes = std::move(nodes),
          .overlap = options.overlap,
          .seed = options.seed,
          .network = scenario.network,
          .transport = scenario.transport};
}

/// Whether the exchange of these options can be cut into fragments and delayed. Throws Error where
/// they want that and cannot have it.
bool can_stream(const OptimizerOptions& options, const ParameterLayout& layout) {
  const bool can =
      algorithm_info(options.algorithm).takes_fragments() && options.buckets.value_or(1) == 1 &&
      make_compressor(options.compressor, ContractKind::any, host_ops(), layout)->divisible();
  if (options.streaming.on() && !can) {
    throw Error(options.streaming.cause(),
                fmt::format("{} with {} cannot be exchanged in fragments, or delayed",
                            options.algorithm, options.compressor));
  }
  return can;
}

/// The candidate with so many rounds from one exchange to the next.
Candidate with_interval(Candidate candidate, Round interval) {
  candidate.interval = interval;
  candidate.run = candidate.run.with("communication-interval", fmt::to_string(interval));
  return candidate;
}

/// The fragments in which the exchange of a candidate is tried. Nodes that keep half of their own
/// model meanwhile learn sooner on like data, and stay apart on unlike ones.
Streaming fragments_of(const Candidate& candidate, const Scenario& scenario) {
  const bool alike = scenario.task.partition == "iid";
  return {.fragments = kFragments,
          .delay = candidate.interval / kFragments - 1,
          .mix = {.own = alike ? 0.5 : 0}};
}

Candidate in_fragments(Candidate candidate, const Streaming& streaming) {
  candidate.run = candidate.run.with("fragments", fmt::to_string(streaming.fragments))
                      .with("sync-delay", fmt::to_string(streaming.delay))
                      .with("sync-mix", sync_mix_text(streaming.mix));
  return candidate;
}

/// Throws Error where a compressor by low-rank factors leaves the model as it is.
void require_matrices(const TrainPlan& plan, const ParameterLayout& layout) {
  const std::string& spec = plan.run.optimizer.compressor;
  const auto compressor = make_compressor(spec, ContractKind::any, host_ops(), layout);
  const auto options = low_rank_options(*compressor);
  if (options &&
      std::ranges::none_of(factor_pieces(layout, static_cast<std::size_t>(options->rank)),
                           [](const FactorPiece& piece) { return piece.matrix.has_value(); })) {
    refuse("compressor", spec,
           "no tensor of the model is a matrix that is larger than its factors, so that nothing "
           "would be compressed; take fewer columns, or another compressor");
  }
}

/// Whether a frame between any of these pairs crosses a link whose queue can overflow.
bool crosses_queues(const Platform& platform, const std::vector<std::pair<Rank, Rank>>& pairs) {
  return std::ranges::any_of(pairs, [&](const auto& pair) {
    const Route route = platform.route(pair.first, pair.second);
    return std::ranges::any_of(
        route.links, [&](LinkId link) { return platform.links()[link].queue_bytes < kUnlimited; });
  });
}

/// What nodes compute besides gradients. Throws Error where the planner itself tries a step rule,
/// and how long its steps take cannot be told.
StepWork work_of(const Proposal& proposal, const TrainPlan& plan, const ParameterLayout& layout) {
  const OptimizerOptions& options = plan.run.optimizer;
  const auto work = step_work(plan, layout);
  if (!work && proposal.varies && proposal.run.find("step-rule") != nullptr &&
      multiply_adds_of(plan, layout, 0).step > 0) {
    refuse("step_rule", options.step_rule.rule,
           "its steps take time beside a gradient, and of this model's gradient the operations "
           "cannot be counted; name it in a run");
  }
  return work.value_or(StepWork{});
}

/// What the proposal says of itself, without a prediction.
Candidate description_of(const Proposal& proposal, const OptimizerOptions& options,
                         const CodecSpeed& codec) {
  const bool to_all = algorithm_info(options.algorithm).graph == GraphNeed::any;
  Candidate made = {
      .run = proposal.run,
      .algorithm = std::string(proposal.run.algorithm()),
      .compressor = options.compressor,
      .method = fmt::format("{} {}{}{}", proposal.run.algorithm(), options.compressor,
                            options.groups.empty() ? "" : " in groups",
                            proposal.run.find("model") == nullptr ? "" : " of another model"),
      .graph = to_all ? "" : options.topology,
      .interval = options.communication_interval,
      .compressed = options.compressor != "none",
      .own = proposal.own,
      .spectral_gap = to_all ? 1 : spectrum(*make_job_topology(options)).spectral_gap,
      .codec = codec};
  note_steps(made);
  return made;
}

}  // namespace

Candidate Prediction::timed(Candidate candidate, const Streaming& streaming) const {
  const OptimizerOptions& options = plan.run.optimizer;
  const bool grouped = !options.groups.empty();
  const PlannedJob spread = grouped ? with_local_steps_of_groups(job, candidate.interval)
                                    : with_local_steps(job, candidate.interval, streaming);
  candidate.step_work = work.of_round(candidate.interval);
  JobTiming paced = timing;
  add_step_work(candidate.step_work, paced.nodes);
  const Round rounds = plan.run.rounds;
  candidate.rounds = scenario.timing_only ? affordable_rounds(spread, rounds) : rounds;
  candidate.predicted_seconds_per_round =
      predict_seconds_per_round(spread, platform, paced, candidate.rounds);
  candidate.bytes_per_round = bytes_per_round(spread, scenario.nodes, candidate.rounds);
  if (grouped) {
    candidate.bytes_per_round_within =
        bytes_per_round_within(spread, NodeGroups(options.groups), candidate.rounds);
  }
  return candidate;
}

std::vector<Candidate> Prediction::paces(const std::vector<Round>& intervals) const {
  std::vector<Candidate> found = {as_proposed()};
  // Experts that lie at nodes, and parts of a graph, need each other's rows in every step.
  if (plan.run.optimizer.placed || intervals.empty()) {
    return found;
  }
  if (described.interval == 1) {
    for (const Round interval : intervals) {
      Candidate local = timed(with_interval(described, interval), {});
      if (local.may_be_shorter_than(found.back())) {
        found.push_back(std::move(local));
      }
    }
  }
  const std::size_t whole = streams ? found.size() : 0;
  for (std::size_t k = 0; k < whole; ++k) {
    if (found[k].interval >= kShortestStreamed) {
      const Streaming streaming = fragments_of(found[k], scenario);
      Candidate cut = timed(in_fragments(found[k], streaming), streaming);
      if (cut.may_be_shorter_than(found[k])) {
        found.push_back(std::move(cut));
      }
    }
  }
  return found;
}

Prediction prediction_of(const Proposal& proposal, const Scenario& scenario, CodecMeter& codec) {
  TrainPlan plan = make_train_plan(options_of(scenario, proposal.run));
  const OptimizerOptions& options = plan.run.optimizer;
  require_few(algorithm_info(options.algorithm).graph == GraphNeed::any, scenario.nodes);
  PlannedJob job = planned_job(scenario, plan);
  const ParameterLayout layout = plan.tasks->make(0)->layout();
  if (!proposal.own) {
    require_matrices(plan, layout);
  }
  const CodecSpeed speed = codec.speed_of(options.compressor, dimension_of(layout));
  Candidate run = description_of(proposal, options, speed);
  Scenario changed = scenario;
  codec.apply(speed, changed);
  const auto pairs = pairs_of(job);
  Platform platform = without_traces(scenario).platform(pairs);
  run.may_take_longer = scenario.has_queues() && crosses_queues(platform, pairs);
  const StepWork work = work_of(proposal, plan, layout);
  JobTiming timing = timing_of(changed, plan);
  const bool streams =
      options.groups.empty() && can_stream(options, layout) && !options.streaming.on();
  return {.scenario = scenario,
          .plan = std::move(plan),
          .described = std::move(run),
          .job = std::move(job),
          .platform = std::move(platform),
          .timing = std::move(timing),
          .work = work,
          .streams = streams};
}

Candidate stepping(Candidate candidate, const MoreSettings& settings) {
  candidate.run = with_settings(std::move(candidate.run), settings);
  note_steps(candidate);
  return candidate;
}

}  // namespace sotto::study

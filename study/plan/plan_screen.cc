#include <sotto/study/plan/plan_screen.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/factors.h>
#include <sotto/compress/low_rank.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/study/internal/scenario_spelling.h>
#include <sotto/study/plan/plan_pattern.h>
#include <sotto/study/plan/step_work.h>
#include <sotto/study/scenario/batch_speeds.h>
#include <sotto/study/train/batch_share.h>
#include <sotto/topology/properties.h>
#include <sotto/topology/registry.h>
#include <sotto/topology/spectrum.h>
#include <sotto/trainers/algorithm_setup.h>

namespace sotto::study {
namespace {

/// Graphs nearly as quick as the quickest: up to this multiple of its time, better mixing
/// decides.
constexpr double kNearlyAsGood = 1.05;
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

/// How nodes of a scenario compute and exchange with these options.
JobTiming timing_of(const Scenario& scenario, const TaskOptions& task,
                    const OptimizerOptions& options) {
  return {.nodes = shared_node_specs(scenario, task),
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

/// Adds it where its rounds take a tenth less than `seconds`.
void add_if_shorter(Candidate candidate, double seconds, std::vector<Candidate>& found) {
  if (candidate.predicted_seconds_per_round < kShorter * seconds) {
    found.push_back(std::move(candidate));
  }
}

/// The variations that go with these options: where experts lie at nodes, these need each other's
/// rows in every step, and alike (check_placed).
Variations fitting(const OptimizerOptions& options, Variations variations) {
  return options.placed ? Variations{.rules = variations.rules, .tied = variations.tied}
                        : std::move(variations);
}

/// The candidate with its time by the model, if its exchange is cut so.
using Predicted = std::function<Candidate(Candidate, const Streaming&)>;

/// Adds the only candidate with each of the intervals, where that is shorter than the one before.
void add_intervals(const std::vector<Round>& intervals, const Predicted& predicted,
                   std::vector<Candidate>& found) {
  const Candidate every_round = found.front();
  for (const Round interval : intervals) {
    Candidate local = every_round;
    local.interval = interval;
    local.run = local.run.with("communication-interval", fmt::to_string(interval));
    add_if_shorter(predicted(std::move(local), {}), found.back().predicted_seconds_per_round,
                   found);
  }
}

/// Adds the candidates with intervals that are long enough with their exchanges in fragments.
void add_fragments(const Scenario& scenario, const Predicted& predicted,
                   std::vector<Candidate>& found) {
  const std::size_t whole = found.size();
  for (std::size_t k = 0; k < whole; ++k) {
    if (found[k].interval >= kShortestStreamed) {
      const Streaming streaming = fragments_of(found[k], scenario);
      add_if_shorter(predicted(in_fragments(found[k], streaming), streaming),
                     found[k].predicted_seconds_per_round, found);
    }
  }
}

/// The candidate with other settings that leave its exchanges as they are.
Candidate stepping(Candidate candidate, const MoreSettings& settings) {
  candidate.run = with_settings(std::move(candidate.run), settings);
  note_steps(candidate);
  return candidate;
}

/// Adds the first `count` candidates with another step rule.
void add_with_rule(const MoreSettings& rule, std::size_t count, std::vector<Candidate>& found) {
  for (std::size_t k = 0; k < count; ++k) {
    found.push_back(stepping(found[k], rule));
  }
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

/// What nodes compute besides gradients. Throws Error where the planner itself tries a step rule,
/// and how long its steps take cannot be told.
StepWork work_of(const Proposal& proposal, const TrainPlan& plan, const ParameterLayout& layout) {
  const OptimizerOptions& options = plan.run.optimizer;
  const bool to_all = algorithm_info(options.algorithm).graph == GraphNeed::any;
  const auto work =
      step_work(plan, layout, to_all ? 0 : properties(*make_job_topology(options)).degree_max);
  if (!work && proposal.varies && proposal.run.find("step-rule") != nullptr &&
      multiply_adds_of(plan, layout, 0).step > 0) {
    refuse("step_rule", options.step_rule.rule,
           "its steps take time beside a gradient, and of this model's gradient the operations "
           "cannot be counted; name it in a run");
  }
  return work.value_or(StepWork{});
}

}  // namespace

void Screen::add_with(std::string_view setting, const std::string& value, const Proposal& proposal,
                      const Variations& variations, std::vector<Candidate>& found) {
  const double seconds = found.front().predicted_seconds_per_round;
  try {
    for (Candidate& one : of({.run = proposal.run.with(setting, value), .varies = true},
                             {.intervals = variations.intervals})) {
      add_if_shorter(std::move(one), seconds, found);
    }
  } catch (const Error&) {
    // The algorithm does not go with it, which nobody has asked for.
  }
}

void Screen::add_ways(const MoreSettings& settings, Round first, const Proposal& proposal,
                      const Variations& variations, std::vector<Candidate>& found) {
  const RunSpec run = with_settings(proposal.run, settings);
  try {
    for (Candidate& one : of({.run = run, .varies = true}, variations)) {
      if (one.interval >= first) {
        found.push_back(std::move(one));
      }
    }
  } catch (const Error& error) {
    refused_.push_back({run.name, error.render(ScenarioSpelling(scenario_, run))});
  }
}

void Screen::add_rules(const Proposal& proposal, const AlgorithmInfo& info,
                       const Variations& variations, std::size_t count,
                       std::vector<Candidate>& found) {
  const std::string_view only = info.step_rules.only;
  for (const StepRuleInfo* rule : variations.rules) {
    if (!only.empty() && only != rule->name) {
      continue;
    }
    MoreSettings settings = {{"step-rule", std::string(rule->name)}};
    for (const RunSetting& rate : rate_of(*rule, scenario_)) {
      settings.push_back(rate);
    }
    if (rule->multiply_adds == nullptr) {
      add_with_rule(settings, count, found);
    } else if (info.graph == GraphNeed::any) {
      add_ways(settings, 1, proposal,
               {.intervals = variations.intervals, .outer_rules = variations.outer_rules}, found);
    }
  }
}

void Screen::add_outer_rule(const Proposal& proposal, const AlgorithmInfo& info,
                            const Variations& variations, std::vector<Candidate>& found) {
  const MoreSettings settings = outer_rule(info);
  if (settings.empty()) {
    return;
  }
  if (info.takes_outer_after_mixing()) {  // which changes when an exchange begins
    add_ways(settings, 2, proposal, {.intervals = variations.intervals}, found);
    return;
  }
  const std::size_t plain = found.size();
  for (std::size_t k = 0; k < plain; ++k) {
    if (found[k].interval > 1) {
      found.push_back(stepping(found[k], settings));
    }
  }
}

void Screen::predict(Candidate& candidate, const PlannedJob& job, const Platform& platform,
                     const JobTiming& timing, Round rounds) const {
  candidate.rounds = scenario_.timing_only ? affordable_rounds(job, rounds) : rounds;
  candidate.predicted_seconds_per_round =
      predict_seconds_per_round(job, platform, timing, candidate.rounds);
  candidate.bytes_per_round = bytes_per_round(job, scenario_.nodes, candidate.rounds);
}

Candidate Screen::candidate_of(const Proposal& proposal, const TrainPlan& plan,
                               const ParameterLayout& layout) {
  const OptimizerOptions& options = plan.run.optimizer;
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
      .codec = codec_.speed_of(options.compressor, dimension_of(layout))};
  note_steps(made);
  return made;
}

std::vector<Candidate> Screen::of(const Proposal& proposal, const Variations& wanted) {
  const TrainPlan plan = make_train_plan(options_of(scenario_, proposal.run));
  const OptimizerOptions& options = plan.run.optimizer;
  const Variations variations = fitting(options, wanted);
  const AlgorithmInfo& info = algorithm_info(options.algorithm);
  const bool to_all = info.graph == GraphNeed::any;
  require_few(to_all, scenario_.nodes);
  const PlannedJob job = planned_job(scenario_, plan);
  const ParameterLayout layout = plan.tasks->make(0)->layout();
  if (!proposal.own) {
    require_matrices(plan, layout);
  }
  const Candidate made = candidate_of(proposal, plan, layout);
  Scenario changed = scenario_;
  codec_.apply(made.codec, changed);
  const Platform platform = without_traces(scenario_).platform(pairs_of(job));
  const StepWork work = work_of(proposal, plan, layout);
  const JobTiming timing = timing_of(changed, plan.tasks->options(), options);
  const bool streams = options.groups.empty() && can_stream(options, layout) &&
                       !options.streaming.on() && !variations.intervals.empty();
  const auto predicted = [&](Candidate one, const Streaming& streaming) {
    const PlannedJob spread = options.groups.empty()
                                  ? with_local_steps(job, one.interval, streaming)
                                  : with_local_steps_of_groups(job, one.interval);
    one.step_work = work.of_round(one.interval);
    JobTiming paced = timing;
    add_step_work(one.step_work, paced.nodes);
    predict(one, spread, platform, paced, plan.run.rounds);
    if (!options.groups.empty()) {
      one.bytes_per_round_within =
          bytes_per_round_within(spread, NodeGroups(options.groups), one.rounds);
    }
    return one;
  };
  std::vector<Candidate> found = {predicted(made, options.streaming)};
  if (!proposal.varies) {
    return found;
  }
  if (made.interval == 1) {
    add_intervals(variations.intervals, predicted, found);
  }
  if (streams) {
    add_fragments(scenario_, predicted, found);
  }
  if (variations.delays && info.takes_delayed_gradients()) {
    Candidate delayed = of({.run = proposal.run.with("delayed-gradient", "true")}, {}).front();
    add_if_shorter(std::move(delayed), found.front().predicted_seconds_per_round, found);
  }
  if (variations.outer_rules) {
    add_outer_rule(proposal, info, variations, found);
  }
  const std::size_t plain = found.size();
  if (variations.quasi_global && info.takes_following_rules()) {
    add_with_rule({{"step-rule", "quasi-global"}}, plain, found);
  }
  if (variations.batch_shares && info.agreement == SettingsAgreement::required) {
    add_with("batch-share", std::string(kShareBySpeed), proposal, variations, found);
  }
  if (to_all || options.topology == "ring") {
    for (const std::string& groups : variations.groups) {
      add_with("groups", groups, proposal, variations, found);
    }
    if (!variations.tied.empty()) {
      add_with("model", variations.tied, proposal, variations, found);
    }
  }
  add_rules(proposal, info, variations, plain, found);
  return found;
}

std::vector<Candidate> in_order_of_promise(std::vector<Candidate> candidates,
                                           const std::function<double(const Candidate&)>& figure) {
  const auto better = [&](const Candidate& a, const Candidate& b) { return figure(a) < figure(b); };
  std::map<std::string, std::vector<Candidate>> methods;
  for (Candidate& candidate : candidates) {
    methods[candidate.method].push_back(std::move(candidate));
  }
  std::vector<std::vector<Candidate>> tiers;  // by what graph of its method it has
  for (auto& [method, same] : methods) {
    std::stable_sort(same.begin(), same.end(), better);
    for (std::size_t tier = 0; !same.empty(); ++tier) {
      const double near = kNearlyAsGood * figure(same.front());
      const auto end = std::find_if(same.begin(), same.end(), [&](const Candidate& candidate) {
        return figure(candidate) > near;
      });
      const auto best = std::max_element(
          same.begin(), end,
          [](const Candidate& a, const Candidate& b) { return a.spectral_gap < b.spectral_gap; });
      tiers.resize(std::max(tiers.size(), tier + 1));
      tiers[tier].push_back(std::move(*best));
      same.erase(best);
    }
  }
  std::vector<Candidate> ordered;
  for (auto& tier : tiers) {
    std::stable_sort(tier.begin(), tier.end(), better);
    std::move(tier.begin(), tier.end(), std::back_inserter(ordered));
  }
  return ordered;
}

}  // namespace sotto::study

#include <sotto/study/plan/plan_screen.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/study/plan/plan_pattern.h>
#include <sotto/study/scenario/batch_speeds.h>
#include <sotto/study/train/batch_share.h>
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
    "algorithm", "compressor", "topology", "communication-interval",
    "fragments", "sync-delay", "sync-mix"};

/// Settings of a run that decide how a node steps.
std::string steps_of(const RunSpec& run) {
  std::string steps;
  for (const RunSetting& setting : run.settings) {
    if (std::ranges::find(kOfExchanges, setting.name) == std::end(kOfExchanges)) {
      steps += fmt::format("{}{}={}", steps.empty() ? "" : " ", setting.name, setting.value);
    }
  }
  return steps;
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

/// Adds the first `count` candidates with another step rule, and with `more` settings.
void add_with_rule(const std::string& rule, const MoreSettings& more, std::size_t count,
                   std::vector<Candidate>& found) {
  for (std::size_t k = 0; k < count; ++k) {
    Candidate changed = found[k];
    changed.run = with_settings(changed.run.with("step-rule", rule), more);
    changed.step_rule = steps_of(changed.run);
    found.push_back(std::move(changed));
  }
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
  return {.run = proposal.run,
          .algorithm = std::string(proposal.run.algorithm()),
          .compressor = options.compressor,
          .method = fmt::format("{} {}{}{}", proposal.run.algorithm(), options.compressor,
                                options.groups.empty() ? "" : " in groups",
                                proposal.run.find("model") == nullptr ? "" : " of another model"),
          .graph = to_all ? "" : options.topology,
          .step_rule = steps_of(proposal.run),
          .interval = options.communication_interval,
          .compressed = options.compressor != "none",
          .own = proposal.own,
          .spectral_gap = to_all ? 1 : spectrum(*make_job_topology(options)).spectral_gap,
          .codec = codec_.speed_of(options.compressor, dimension_of(layout))};
}

std::vector<Candidate> Screen::of(const Proposal& proposal, const Variations& variations) {
  const TrainPlan plan = make_train_plan(options_of(scenario_, proposal.run));
  const OptimizerOptions& options = plan.run.optimizer;
  const AlgorithmInfo& info = algorithm_info(options.algorithm);
  const bool to_all = info.graph == GraphNeed::any;
  require_few(to_all, scenario_.nodes);
  const PlannedJob job = planned_job(scenario_, plan);
  const ParameterLayout layout = plan.tasks->make(0)->layout();
  const Candidate made = candidate_of(proposal, plan, layout);
  Scenario changed = scenario_;
  codec_.apply(made.codec, changed);
  const Platform platform = without_traces(scenario_).platform(pairs_of(job));
  const JobTiming timing = timing_of(changed, plan.tasks->options(), options);
  const bool streams = options.groups.empty() && can_stream(options, layout) &&
                       !options.streaming.on() && !variations.intervals.empty();
  const auto predicted = [&](Candidate one, const Streaming& streaming) {
    const PlannedJob spread = options.groups.empty()
                                  ? with_local_steps(job, one.interval, streaming)
                                  : with_local_steps_of_groups(job, one.interval);
    predict(one, spread, platform, timing, plan.run.rounds);
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
  const std::size_t plain = found.size();
  if (variations.quasi_global && info.takes_following_rules()) {
    add_with_rule("quasi-global", {}, plain, found);
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
  if (variations.adam) {
    add_with_rule("adam", adam_rate(scenario_), plain, found);
  }
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

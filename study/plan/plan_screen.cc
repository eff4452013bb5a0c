#include <sotto/study/plan/plan_screen.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/step_rule_info.h>
#include <sotto/study/internal/scenario_spelling.h>
#include <sotto/study/plan/internal/plan_prediction.h>
#include <sotto/study/scenario/batch_speeds.h>
#include <sotto/study/train/batch_share.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::study {
namespace {

/// Rounds from one exchange to the next that are considered unasked.
constexpr std::array<Round, 2> kIntervals = {4, 8};
/// Graphs nearly as quick as the quickest: up to this multiple of its time, better mixing decides.
constexpr double kNearlyAsGood = 1.05;

/// Ways to step that are tried beside a proposal's own.
struct Variations {
  /// Rounds from one exchange to the next, each above 1, ascending.
  std::vector<Round> intervals{};
  bool delays = false;  ///< try gradients that do not wait for the exchange
  /// Step rules that are tried in place of the task's: Adam everywhere, and one that multiplies
  /// matrices where all nodes step as one.
  std::vector<const StepRuleInfo*> rules{};
  /// Try DiLoCo's and NoLoCo's outer rules with those intervals (outer_rule).
  bool outer_rules = false;
  std::vector<std::string> groups{};
  std::string tied{};
  bool batch_shares = false;  ///< try batches by the nodes' speeds
  bool quasi_global = false;  ///< try quasi-global momentum in place of the task's, where nodes mix
};

/// The ways to step that the search tries. None where only the time of a round counts, which does
/// not show what they cost in rounds; intervals and delays only where the task sets nothing of the
/// kind. The intervals of the scenario's own runs are among those tried.
Variations variations_of(const SearchSpace& space, const Scenario& scenario) {
  Variations all;
  if (scenario.task.groups.empty() && !scenario.attack) {
    all.groups = space.groups;
  }
  all.batch_shares = tries_batch_shares(scenario);
  if (space.goal == Goal::epoch) {
    return all;
  }
  all.rules = tried_rules(space.lists, scenario);
  all.quasi_global = tries_quasi_global(scenario);
  all.tied = space.tied;
  if (scenario.task.communication_interval != 1 || !scenario.task.outer_step_rule.empty() ||
      scenario.task.delayed_gradient) {
    return all;
  }
  all.delays = true;
  std::set<Round> intervals(kIntervals.begin(), kIntervals.end());
  for (const RunSpec& run : scenario.runs) {
    intervals.insert(with_run(scenario.task, run).communication_interval);
  }
  all.outer_rules = true;
  all.intervals.assign(intervals.upper_bound(1), intervals.upper_bound(space.rounds));
  return all;
}

/// The variations that go with these options: where experts lie at nodes, or a graph in parts,
/// these need each other's rows in every step, and alike (check_placed).
Variations fitting(const OptimizerOptions& options, Variations variations) {
  return options.placed ? Variations{.rules = variations.rules, .tied = variations.tied}
                        : std::move(variations);
}

/// Adds the first `count` candidates with another step rule.
void add_with_rule(const MoreSettings& rule, std::size_t count, std::vector<Candidate>& found) {
  for (std::size_t k = 0; k < count; ++k) {
    found.push_back(stepping(found[k], rule));
  }
}

/// Screens proposals one by one.
class Screen {
 public:
  /// Both must outlive this.
  Screen(const Scenario& scenario, CodecMeter& codec) : scenario_(scenario), codec_(codec) {}

  /// The run, and the variations that are worth a look where it varies. Throws Error for a run that
  /// its algorithm's requirements refuse.
  std::vector<Candidate> of(const Proposal& proposal, const Variations& wanted) {
    const Prediction prediction = prediction_of(proposal, scenario_, codec_);
    if (!proposal.varies) {
      return {prediction.as_proposed()};
    }
    const RunSpec& run = proposal.run;
    const OptimizerOptions& options = prediction.plan.run.optimizer;
    const AlgorithmInfo& info = algorithm_info(options.algorithm);
    const Variations variations = fitting(options, wanted);
    if (options.placed) {
      note_unfitting(run, info, wanted);
    }
    const std::vector<Round>& intervals = variations.intervals;
    std::vector<Candidate> found = prediction.paces(intervals);
    if (variations.delays && info.takes_delayed_gradients()) {
      add_delayed(run, found);
    }
    if (variations.outer_rules) {
      add_outer_rule(run, info, intervals, found);
    }
    const std::size_t plain = found.size();
    if (variations.quasi_global && info.takes_following_rules()) {
      add_with_rule({{"step-rule", "quasi-global"}}, plain, found);
    }
    if (variations.batch_shares && info.agreement == SettingsAgreement::required) {
      add_shorter(run.with("batch-share", kShareBySpeed), intervals, found);
    }
    if (info.graph == GraphNeed::any || options.topology == "ring") {
      for (const std::string& groups : variations.groups) {
        add_shorter(run.with("groups", groups), intervals, found);
      }
      if (!variations.tied.empty()) {
        add_shorter(run.with("model", variations.tied), intervals, found);
      }
    }
    add_rules(run, info, variations, plain, found);
    return found;
  }

  /// Variations that were refused.
  const std::vector<Refusal>& refused() const { return refused_; }

 private:
  /// Notes, once each, the wanted ways to step that do not go with the run, whose experts or
  /// graph lie at nodes.
  void note_unfitting(const RunSpec& run, const AlgorithmInfo& info, const Variations& wanted) {
    std::vector<MoreSettings> dropped;
    if (!wanted.intervals.empty()) {
      const RunSetting interval = {"communication-interval",
                                   fmt::to_string(wanted.intervals.front())};
      dropped.push_back({interval});
      MoreSettings outer = wanted.outer_rules ? outer_rule(info) : MoreSettings{};
      if (!outer.empty()) {
        outer.insert(outer.begin(), interval);
        dropped.push_back(std::move(outer));
      }
    }
    if (!wanted.groups.empty()) {
      dropped.push_back({{"groups", wanted.groups.front()}});
    }
    if (wanted.batch_shares && info.agreement == SettingsAgreement::required) {
      dropped.push_back({{"batch-share", std::string(kShareBySpeed)}});
    }
    for (const MoreSettings& settings : dropped) {
      const std::string words = words_of(settings);
      if (!unfitting_.insert(words).second) {
        continue;
      }
      const RunSpec varied = with_settings(run, settings);
      try {
        (void)make_train_plan(options_of(scenario_, varied));
      } catch (const Error& error) {
        const bool experts = scenario_.task.experts_at == "nodes";
        refused_.push_back({words, fmt::format("not tried where {} at nodes: {}",
                                               experts ? "experts lie" : "a graph lies in parts",
                                               error.render(ScenarioSpelling(scenario_, varied)))});
      }
    }
  }

  /// The run as it is and with the intervals, as Prediction::paces has them. Throws Error for a run
  /// that is refused.
  std::vector<Candidate> paces_of(const RunSpec& run, const std::vector<Round>& intervals) {
    return prediction_of({.run = run, .varies = true}, scenario_, codec_).paces(intervals);
  }

  /// Gives the same, and none for a run that is refused, which is noted.
  std::vector<Candidate> paces_or_refusal(const RunSpec& run, const std::vector<Round>& intervals) {
    try {
      return paces_of(run, intervals);
    } catch (const Error& error) {
      refused_.push_back({run.name, error.render(ScenarioSpelling(scenario_, run))});
      return {};
    }
  }

  /// Adds the paces of the run that may be shorter than the first that was found.
  void add_shorter(const RunSpec& run, const std::vector<Round>& intervals,
                   std::vector<Candidate>& found) {
    try {
      for (Candidate& one : paces_of(run, intervals)) {
        if (one.may_be_shorter_than(found.front())) {
          found.push_back(std::move(one));
        }
      }
    } catch (const Error&) {
      // The algorithm does not go with it, which nobody has asked for.
    }
  }

  /// Adds the run with delayed gradients, where that may make a round shorter.
  void add_delayed(const RunSpec& run, std::vector<Candidate>& found) {
    Candidate delayed =
        prediction_of({.run = run.with("delayed-gradient", "true")}, scenario_, codec_)
            .as_proposed();
    if (delayed.may_be_shorter_than(found.front())) {
      found.push_back(std::move(delayed));
    }
  }

  /// Adds candidates with intervals with the outer rule of the algorithm.
  void add_outer_rule(const RunSpec& run, const AlgorithmInfo& info,
                      const std::vector<Round>& intervals, std::vector<Candidate>& found) {
    const MoreSettings settings = outer_rule(info);
    if (settings.empty()) {
      return;
    }
    std::vector<Candidate> outer;
    if (info.takes_outer_after_mixing()) {  // which changes when an exchange begins
      outer = paces_or_refusal(with_settings(run, settings), intervals);
    } else {
      for (const Candidate& one : found) {
        outer.push_back(stepping(one, settings));
      }
    }
    std::ranges::copy_if(outer, std::back_inserter(found),
                         [](const Candidate& one) { return one.interval > 1; });
  }

  /// Adds the found candidates with the step rules to try, the first `count` of them.
  void add_rules(const RunSpec& run, const AlgorithmInfo& info, const Variations& variations,
                 std::size_t count, std::vector<Candidate>& found) {
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
        const RunSpec ruled = with_settings(run, settings);
        auto paces = paces_or_refusal(ruled, variations.intervals);
        if (variations.outer_rules && !paces.empty()) {
          add_outer_rule(ruled, info, variations.intervals, paces);
        }
        std::move(paces.begin(), paces.end(), std::back_inserter(found));
      }
    }
  }

  const Scenario& scenario_;
  CodecMeter& codec_;
  std::vector<Refusal> refused_;
  std::set<std::string> unfitting_;  ///< settings that note_unfitting has seen
};

/// Throws Error for a run of the scenario's own that cannot be.
void check_own_runs(const Scenario& scenario) {
  for (std::size_t k = 0; k < scenario.runs.size(); ++k) {
    (void)naming_run(scenario, k,
                     [&] { return make_train_plan(options_of(scenario, scenario.runs[k])); });
  }
}

/// Throws Error where a refusal left nothing but the baseline, which nobody asked for.
void refuse_nothing_asked(const CandidateLists& lists, const Screened& found) {
  const bool only_baseline =
      std::all_of(found.candidates.begin(), found.candidates.end(),
                  [](const Candidate& one) { return one.algorithm == kBaseline && !one.own; });
  const bool baseline_asked = lists.algorithms == std::vector<std::string>{kBaseline};
  if (only_baseline && !baseline_asked && !found.refused.empty()) {
    throw Error(fmt::format("nothing that was asked for is possible: {}: {}",
                            found.refused.back().run, found.refused.back().why));
  }
}

/// The algorithms that are not tried unasked, and why.
std::vector<Refusal> untried(const Scenario& scenario) {
  std::vector<Refusal> found;
  for (const AlgorithmInfo& info : algorithms()) {
    if (const std::string why = why_not_tried(info, scenario); !why.empty()) {
      found.push_back({std::string(info.name), "not tried: " + why});
    }
  }
  return found;
}

}  // namespace

Result<Screened> screen_space(const SearchSpace& space, const Scenario& scenario, CodecMeter& codec,
                              const StopRequest& stop) {
  if (space.lists.empty()) {
    check_own_runs(scenario);
  }
  const Variations variations = variations_of(space, scenario);
  Screen screen(scenario, codec);
  Screened found;
  for (const Proposal& one : proposals(space.lists, scenario, space.graphs, space.rounds)) {
    if (stop && stop()) {
      return Status(Fault::stopped, std::string(kStopped));
    }
    try {
      auto paces = screen.of(one, variations);
      std::move(paces.begin(), paces.end(), std::back_inserter(found.candidates));
    } catch (const Error& error) {
      found.refused.push_back({one.run.name, error.render(ScenarioSpelling(scenario, one.run))});
    }
  }
  refuse_nothing_asked(space.lists, found);
  found.refused.insert(found.refused.end(), screen.refused().begin(), screen.refused().end());
  if (space.lists.algorithms.empty()) {
    found.untried = untried(scenario);
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

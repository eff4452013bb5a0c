#include <sotto/study/plan/plan_screen.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include <sotto/base/error.h>
#include <sotto/optim/registry.h>
#include <sotto/study/internal/scenario_spelling.h>
#include <sotto/study/plan/internal/plan_prediction.h>
#include <sotto/study/train/batch_share.h>

namespace sotto::study {
namespace {

/// Graphs nearly as quick as the quickest: up to this multiple of its time, better mixing
/// decides.
constexpr double kNearlyAsGood = 1.05;
/// The variations that go with these options: where experts lie at nodes, these need each other's
/// rows in every step, and alike (check_placed).
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

}  // namespace

std::vector<Candidate> Screen::paces_of(const RunSpec& run, const std::vector<Round>& intervals) {
  return prediction_of({.run = run, .varies = true}, scenario_, codec_).paces(intervals);
}

std::vector<Candidate> Screen::paces_or_refusal(const RunSpec& run,
                                                const std::vector<Round>& intervals) {
  try {
    return paces_of(run, intervals);
  } catch (const Error& error) {
    refused_.push_back({run.name, error.render(ScenarioSpelling(scenario_, run))});
    return {};
  }
}

void Screen::add_shorter(const RunSpec& run, const std::vector<Round>& intervals,
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

void Screen::add_delayed(const RunSpec& run, std::vector<Candidate>& found) {
  Candidate delayed =
      prediction_of({.run = run.with("delayed-gradient", "true")}, scenario_, codec_).as_proposed();
  if (delayed.may_be_shorter_than(found.front())) {
    found.push_back(std::move(delayed));
  }
}

void Screen::add_outer_rule(const RunSpec& run, const AlgorithmInfo& info,
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

void Screen::add_rules(const RunSpec& run, const AlgorithmInfo& info, const Variations& variations,
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

std::vector<Candidate> Screen::of(const Proposal& proposal, const Variations& wanted) {
  const Prediction prediction = prediction_of(proposal, scenario_, codec_);
  if (!proposal.varies) {
    return {prediction.as_proposed()};
  }
  const RunSpec& run = proposal.run;
  const OptimizerOptions& options = prediction.plan.run.optimizer;
  const AlgorithmInfo& info = algorithm_info(options.algorithm);
  const Variations variations = fitting(options, wanted);
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

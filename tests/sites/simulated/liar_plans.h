// Plans in which sites lie, drawn whole by a seed: graph, exchange, compressor, rule, weighting,
// outer step and who lies about what; and what must hold of honest sites beside them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/philox.h>
#include <sotto/sites/faults/site_liveness.h>
#include <sotto/sites/simulated/simulated_sites.h>
#include <sotto/topology/registry.h>

#include "sites/simulated/fault_plans.h"

namespace sotto::test {

/// A plan with liars, and whether nothing else goes wrong in it.
struct LiarPlan {
  FaultPlan plan;
  bool calm = false;
};

namespace internal {

template <typename T, std::size_t kCount>
const T& one_of(RandomStream& draw, const std::array<T, kCount>& all) {
  return all[draw.below(kCount)];
}

inline void draw_exchange(FaultPlan& plan, RandomStream& draw) {
  constexpr std::array<const char*, 5> kSums = {"none", "none", "quant:8", "topk:0.3", "sign"};
  constexpr std::array<const char*, 4> kCopies = {"none", "quant:8", "quant:4", "topk:0.3"};
  constexpr std::array<const char*, 5> kRules = {"mean", "median", "trimmed-mean:1", "clipped:auto",
                                                 "geometric-median"};
  const std::uint64_t kind = draw.below(10);
  if (kind < 5) {
    plan.exchange = sites::MixingKind::push_sum;
    plan.compressor = one_of(draw, kSums);
  } else if (kind < 7) {
    plan.exchange = sites::MixingKind::gossip;
    plan.compressor = one_of(draw, kCopies);
  } else if (kind < 9) {
    plan.exchange = sites::MixingKind::gossip;
    plan.rule = one_of(draw, kRules);
  } else {
    plan.exchange = sites::MixingKind::secure_mean;
  }
  plan.window = sites::usual_window(plan.exchange);
}

inline void draw_graph(FaultPlan& plan, RandomStream& draw) {
  constexpr std::array<const char*, 6> kDirected = {"complete",    "complete",  "ring",
                                                    "exponential", "erdos:0.6", "torus"};
  constexpr std::array<const char*, 4> kMutual = {"complete", "ring", "erdos:0.6", "torus"};
  plan.sites = 4 + static_cast<int>(draw.below(6));
  plan.graph = plan.exchange == sites::MixingKind::push_sum ? one_of(draw, kDirected)
                                                            : one_of(draw, kMutual);
  if (plan.exchange == sites::MixingKind::secure_mean || !plan.rule.empty()) {
    plan.graph = "complete";  // a rule needs more neighbours than a ring has
    plan.sites = std::max(plan.sites, plan.rule.empty() ? 4 : 6);
  }
}

inline void draw_steps(FaultPlan& plan, RandomStream& draw) {
  constexpr std::array<Round, 4> kIntervals = {1, 1, 2, 4};
  plan.interval = one_of(draw, kIntervals);
  plan.uneven = plan.interval > 1 && draw.below(2) == 0;
  plan.weighting =
      plan.uneven && draw.below(2) == 0 ? sites::StepWeighting::equal : sites::StepWeighting::work;
  plan.gradient = 250 * kMillisecond / static_cast<SimTime>(plan.interval);
  if (draw.below(4) == 0) {
    plan.outer = StepRuleOptions{
        .learning_rate = 0.7, .momentum = draw.below(2) == 0 ? 0 : 0.3, .nesterov = false};
    plan.outer->nesterov = plan.outer->momentum > 0;
  }
}

}  // namespace internal

/// The plan of a seed; in every second one faults happen besides.
inline LiarPlan draw_liar_plan(std::uint64_t seed) {
  RandomStream draw({.seed = seed, .rank = 77, .purpose = Purpose::test});
  LiarPlan drawn{.plan = plan_of(4, {}, 240 * kSecond), .calm = draw.below(2) == 0};
  FaultPlan& plan = drawn.plan;
  internal::draw_exchange(plan, draw);
  internal::draw_graph(plan, draw);
  internal::draw_steps(plan, draw);
  if (!drawn.calm) {
    plan.random = soak(plan.sites, plan.graph, 10, 60 * kSecond).random;
    plan.duration = 60 * kSecond;
  }
  plan.random_lies.liars = plan.sites >= 7 ? 1 + draw.below(2) : 1;
  plan.sites = make_topology(plan.graph, plan.sites)->nodes();
  plan = with_drawn_lies(plan, seed);
  return drawn;
}

/// In words, for a failure's report.
inline std::string words_of(const FaultPlan& plan) {
  std::string words = fmt::format("{} sites, {}, {}, {}, rule '{}', interval {}{}{}{}", plan.sites,
                                  plan.graph, name_of(plan.exchange), plan.compressor, plan.rule,
                                  plan.interval, plan.uneven ? ", uneven" : "",
                                  plan.weighting == sites::StepWeighting::equal ? ", equal" : "",
                                  plan.outer ? ", outer" : "");
  for (const PlannedLie& lie : plan.lies) {
    words += fmt::format("; site {} {} {:.3g} often {} part {:.2f} from {:.1f} s{} to {:.1f} s",
                         lie.sites.front(), name_of(lie.kind), lie.strength_of(), lie.often,
                         lie.part, to_seconds(lie.at), lie.restarts ? " restarted" : "",
                         to_seconds(std::min(lie.end(), plan.duration)));
  }
  return words;
}

/// Whether what a liar does has an effect on honest sites that must be told. Of what is not told
/// docs/security.md speaks.
inline bool must_be_named(const FaultPlan& plan, const PlannedLie& lie) {
  constexpr SimTime kLongWhile = 40 * kSecond;  // habits take 64 rounds
  const bool lasts = std::min(lie.end(), plan.duration) - lie.at > kLongWhile;
  const bool sums = plan.exchange == sites::MixingKind::secure_mean;
  switch (lie.kind) {
    case LieKind::takes:
    case LieKind::swallows: {
      // A site that has not met all others sends nothing to a sum; one that garbles is met by none.
      const bool excused = sums && std::ranges::any_of(plan.lies, [](const PlannedLie& other) {
                             return other.kind == LieKind::garbles;
                           });
      return lasts && !excused;
    }
    case LieKind::denies:
      return lasts;
    case LieKind::mints:
      return lasts && lie.often >= 0.5 && lie.strength_of() > 1.1;
    case LieKind::stints:
      return false;  // as long as its mass is not at its floor a site has lost nothing
    case LieKind::kills:
      return lasts && lie.strength_of() > 1e4 && !sums;
    case LieKind::late:
      return false;  // only where rounds did wait for it: see rounds
    case LieKind::ahead:
      return lasts && lie.strength_of() > 1e10;
    case LieKind::garbles:
      return lasts;
    case LieKind::floods:
      return false;  // the channel's quota, which is not simulated
  }
  return false;
}

/// The plan in which those that would lie are never there.
inline FaultPlan without_liars(FaultPlan plan) {
  for (const PlannedLie& lie : plan.lies) {
    plan.faults.push_back({.kind = FaultKind::join, .sites = lie.sites, .at = plan.duration});
  }
  plan.lies.clear();
  return plan;
}

/// Whether a site has a neighbour that does not lie. One that has none goes at the pace of liars.
inline bool has_honest_neighbour(const FaultPlan& plan, Rank site) {
  const auto graph = make_topology(plan.graph, plan.sites);
  return std::ranges::any_of(neighbours(*graph, site),
                             [&](Rank peer) { return plan.lie_of(peer) == nullptr; });
}

/// The rounds that a site must make beside liars that makes so many without them: nine tenths. A
/// secure sum that a site is missing in takes three more ways to a peer and back.
inline Round least_due(const FaultPlan& plan, Round without) {
  const double lasts = to_seconds(plan.duration) / static_cast<double>(std::max<Round>(1, without));
  const bool sums = plan.exchange == sites::MixingKind::secure_mean;
  const double more = sums ? 6 * to_seconds(plan.link.latency) : 0;
  return static_cast<Round>(0.9 * to_seconds(plan.duration) / (lasts + more));
}

/// What is wrong beside liars in the run of this seed; empty: nothing.
inline std::vector<std::string> troubles_of(std::uint64_t seed) {
  const LiarPlan drawn = draw_liar_plan(seed);
  const FaultPlan& plan = drawn.plan;
  const auto run = [&](const FaultPlan& of) {
    return simulate_sites(of, {.seed = seed, .dimension = 6});
  };
  const SimulatedSitesReport report = run(plan);
  std::vector<std::string> found;
  if (report.violation) {
    found.push_back(fmt::format("violation: site {} at {:.3f} s, {}: {}", report.violation->site,
                                to_seconds(report.violation->time), report.violation->during,
                                report.violation->what));
    return found;
  }
  if (!drawn.calm) {
    return found;
  }
  for (const std::string& words : report.ended) {
    found.push_back("ended: " + words);
  }
  for (const Accusation& one : report.accusations) {
    // What a robust rule makes of unlike data may well be far apart; whoever passes on what a liar
    // gave gives, too; and whoever began with a liar's model was far away in its first rounds.
    const bool far = one.habit == sites::PeerHabit::stays_far && !plan.rule.empty();
    const bool misled = one.misled && one.habit == sites::PeerHabit::none;
    if (!far && !misled && one.habit != sites::PeerHabit::gives) {
      found.push_back("accused: " + one.words);
    }
  }
  for (const NamedLie& one : report.named) {
    const PlannedLie& lie = *plan.lie_of(one.liar);
    const bool concerned = lie.kind == LieKind::denies ? one.tells : one.hears;
    if (!one.named && concerned && must_be_named(plan, lie) && has_honest_neighbour(plan, one.by)) {
      found.push_back(fmt::format("not named: site {} by site {}", one.liar, one.by));
    }
  }
  // In their place, honest sites; or nobody.
  FaultPlan honest = plan;
  honest.lies.clear();
  const SimulatedSitesReport beside = run(honest);
  const SimulatedSitesReport without = run(without_liars(plan));
  for (std::size_t site = 0; site < report.rounds.size(); ++site) {
    const Round due = least_due(plan, std::min(beside.rounds[site], without.rounds[site]));
    const auto rank = static_cast<Rank>(site);
    if (plan.lie_of(rank) == nullptr && report.rounds[site] < due &&
        has_honest_neighbour(plan, rank)) {
      found.push_back(fmt::format("rounds: site {} made {} of {}, and without liars {} or {}", site,
                                  report.rounds[site], due, beside.rounds[site],
                                  without.rounds[site]));
    }
  }
  return found;
}

}  // namespace sotto::test

#include <sotto/optim/robust/aggregation.h>

#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <sotto/base/names.h>
#include <sotto/base/number.h>
#include <sotto/optim/robust/clipped.h>
#include <sotto/optim/robust/coordinates.h>
#include <sotto/optim/robust/geometric_median.h>
#include <sotto/optim/robust/krum.h>

namespace sotto {
namespace {

constexpr std::array<AggregationInfo, 7> kAggregations = {{
    {"clipped", "clipped:auto[:K], clipped:TAU or clipped:second-largest",
     "neighbours pull by at most TAU; auto: by what the node's own step and its nearest "
     "neighbour allow, K = 10 own steps at most"},
    {"trimmed-mean", "trimmed-mean:B", "each coordinate's mean without its B largest and smallest"},
    {"median", "median", "each coordinate's median"},
    {"geometric-median", "geometric-median[:STEPS]",
     "the point with the least sum of distances, by STEPS = 8 Weiszfeld steps"},
    {"krum", "krum:B", "the one model nearest to its neighbours, B of which may lie"},
    {"multi-krum", "multi-krum:B", "the mean of all but the B models that are farthest off"},
    {"mean", "mean", "the mixing matrix's weighted mean, no defence: to compare with"},
}};

[[noreturn]] void refuse_rule(std::string_view spec) {
  refuse_unregistered("rule", spec, kAggregations);
}

/// A distance: positive and finite.
double positive(std::string_view spec, std::string_view text) {
  const auto value = parse_number<double>(text);
  if (!value || !std::isfinite(*value) || !(*value > 0)) {
    refuse_rule(spec);
  }
  return *value;
}

std::size_t whole(std::string_view spec, std::string_view text) {
  constexpr std::size_t kMost = 1'000'000;
  const auto value = parse_number<std::size_t>(text, 0, kMost);
  if (!value) {
    refuse_rule(spec);
  }
  return *value;
}

std::unique_ptr<Aggregation> make_clipped(std::string_view spec, std::string_view radius,
                                          std::size_t neighbours, const Ops& ops) {
  constexpr std::string_view kAuto = "auto:";
  using Radius = Clipped::Radius;
  if (radius.empty() || radius == "auto") {
    return std::make_unique<Clipped>(Radius::automatic, Clipped::kDefaultReach, neighbours, ops);
  }
  if (radius.starts_with(kAuto)) {
    return std::make_unique<Clipped>(Radius::automatic, positive(spec, radius.substr(kAuto.size())),
                                     neighbours, ops);
  }
  if (radius == "second-largest") {
    return std::make_unique<Clipped>(Radius::second_largest, 0, neighbours, ops);
  }
  return std::make_unique<Clipped>(Radius::fixed, positive(spec, radius), neighbours, ops);
}

}  // namespace

std::span<const AggregationInfo> aggregations() { return kAggregations; }

std::unique_ptr<Aggregation> make_aggregation(std::string_view spec, std::size_t neighbours,
                                              std::size_t dimension, const Ops& ops) {
  const auto colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const bool plain = colon == std::string_view::npos;
  const std::string_view parameter = plain ? std::string_view{} : spec.substr(colon + 1);
  if (name == "clipped" && (plain || !parameter.empty())) {
    return make_clipped(spec, parameter, neighbours, ops);
  }
  if (name == "geometric-median") {
    const auto steps = plain ? GeometricMedian::kDefaultSteps : whole(spec, parameter);
    if (steps > 0) {
      return std::make_unique<GeometricMedian>(steps, neighbours, dimension, ops);
    }
  }
  if (name == "trimmed-mean" && !plain) {
    return std::make_unique<TrimmedMean>(whole(spec, parameter), neighbours);
  }
  if ((name == "krum" || name == "multi-krum") && !plain) {
    return std::make_unique<Krum>(whole(spec, parameter), name == "multi-krum", neighbours,
                                  dimension, ops);
  }
  if (name == "median" && plain) {
    return std::make_unique<TrimmedMean>(std::nullopt, neighbours);
  }
  if (name == "mean" && plain) {
    return std::make_unique<WeightedMean>(ops);
  }
  refuse_rule(spec);
}

}  // namespace sotto

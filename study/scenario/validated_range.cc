#include <sotto/study/scenario/validated_range.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/study/units.h>

namespace sotto::study {
namespace {

// `netlab loss` measures within these.
constexpr double kMostLoss = 0.02;
constexpr SimTime kLongestLossyRoundTrip = 300'000'000;

/// The figures of the worst way between two nodes.
struct WorstWay {
  double loss = 0;
  SimTime round_trip = 0;  ///< longest round trip of a way that loses packets

  void add(const LinkSpec& way) {
    loss = std::max(loss, way.loss);
    if (way.loss > 0) {
      round_trip = std::max(round_trip, 2 * way.latency);
    }
  }
  /// The way between one node of each side: the others of a group have what it has.
  void add(const Scenario& scenario, const std::vector<Rank>& from, const std::vector<Rank>& to) {
    const auto other = std::ranges::find_if(to, [&](Rank rank) { return rank != from.front(); });
    if (other != to.end()) {
      add(scenario.way_between(from.front(), *other));
    }
  }
};

WorstWay worst_way(const Scenario& scenario) {
  WorstWay worst;
  worst.add(scenario.link);
  for (const LinksBetween& links : scenario.between) {
    worst.add(scenario, links.from, links.to);
  }
  for (const Trunk& trunk : scenario.trunks) {
    worst.add(scenario, trunk.from, trunk.to);
  }
  return worst;
}

}  // namespace

std::vector<std::string> outside_validated_range(const Scenario& scenario) {
  const WorstWay worst = worst_way(scenario);
  std::vector<std::string> found;
  if (worst.loss > 0 && scenario.network.initial_window_bytes == kUnlimited) {
    found.emplace_back(
        "links lose packets, but the scenario has no [network] tcp: times are bounded by TCP's "
        "mean rate alone, and too short; add tcp = {}");
  } else if (worst.loss > kMostLoss) {
    found.push_back(
        fmt::format("links lose {} of their packets: times were compared with real ones up to {}, "
                    "and are too short above",
                    percent(worst.loss), percent(kMostLoss)));
  }
  if (worst.round_trip > kLongestLossyRoundTrip) {
    found.push_back(fmt::format(
        "links that lose packets have a round trip of {}: times were compared with real ones up to "
        "{}, and may be off by a third above",
        duration_text(to_seconds(worst.round_trip)),
        duration_text(to_seconds(kLongestLossyRoundTrip))));
  }
  return found;
}

}  // namespace sotto::study

#include <sotto/study/scenario/validated_range.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/study/units.h>

namespace sotto::study {
namespace {

// `netlab loss` measures within these.
constexpr double kMostLoss = 0.02;
constexpr SimTime kLongestLossyRoundTrip = 300'000'000;

/// The figures of the worst way between two nodes, at most.
struct WorstWay {
  double loss = 0;
  SimTime round_trip = 0;  ///< of a way that loses packets

  void add(const LinkSpec& link) {
    loss = std::max(loss, link.loss);
    if (link.loss > 0) {
      round_trip = std::max(round_trip, 2 * link.latency);
    }
  }
};

WorstWay worst_way(const Scenario& scenario) {
  WorstWay worst;
  worst.add(scenario.link);
  for (const LinksBetween& links : scenario.between) {
    worst.add(links.link);
  }
  for (const Trunk& trunk : scenario.trunks) {
    worst.add(trunk.link);
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
        "mean "
        "rate alone, and too short; add tcp = {}");
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

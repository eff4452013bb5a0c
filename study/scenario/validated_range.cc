#include <sotto/study/scenario/validated_range.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/study/units.h>

namespace sotto::study {
namespace {

// What `netlab streams` measures within.
constexpr double kMostLoss = 0.15;
constexpr double kLongestBurst = 2;
constexpr SimTime kLongestLossyRoundTrip = 300'000'000;

/// The figures of the worst way between two nodes.
struct WorstWay {
  double loss = 0;
  double burst = 0;
  SimTime round_trip = 0;  ///< longest round trip of a way that loses packets

  void add(const LinkSpec& way) {
    loss = std::max(loss, way.loss);
    if (way.loss > 0) {
      burst = std::max(burst, way.loss_burst);
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

/// Whether nodes send and receive at rates of their own while links become slower in mid-run.
bool slows_unequal_hosts(const Scenario& scenario) {
  const bool unequal = std::ranges::any_of(scenario.hosts, [](const HostSpec& host) {
    return host.up_bytes_per_s != host.down_bytes_per_s;
  });
  return unequal && std::ranges::any_of(scenario.changes, [&](const LinksChange& change) {
           const Rank from = change.from.front();
           const Rank to = change.to.back();
           return change.bytes_per_s &&
                  *change.bytes_per_s <
                      std::min({scenario.link_between(from, to).bytes_per_s,
                                scenario.hosts[static_cast<std::size_t>(from)].up_bytes_per_s,
                                scenario.hosts[static_cast<std::size_t>(to)].down_bytes_per_s});
         });
}

void look_at_losses(const WorstWay& worst, const NetworkModel& network,
                    std::vector<std::string>& found) {
  if (worst.loss > 0 && network.initial_window_bytes == kUnlimited) {
    found.emplace_back(
        "links lose packets, but the scenario has no [network] tcp: times are bounded by TCP's "
        "mean rate alone, and too short; add tcp = {}");
    return;
  }
  const bool bbr = network.congestion == Congestion::bbr;
  if (worst.loss > kMostLoss) {
    found.push_back(
        fmt::format("links lose {} of their packets: times with {} were compared with real ones up "
                    "to {}, and may be off by half above",
                    percent(worst.loss), congestion_name(network.congestion), percent(kMostLoss)));
  } else if (bbr && worst.loss > 0) {
    found.emplace_back(
        "times with bbr over links that lose packets differed from real ones by 11 % in the "
        "median, and by 35 % at worst");
  }
  if (worst.burst > kLongestBurst) {
    found.push_back(fmt::format(
        "links lose {:g} packets in a row, on average: times were compared with real "
        "ones up to {:g}; above, few time-outs that double decide, and one run, real or "
        "simulated, says little of another",
        worst.burst, kLongestBurst));
  }
}

}  // namespace

std::vector<std::string> outside_validated_range(const Scenario& scenario) {
  const WorstWay worst = worst_way(scenario);
  std::vector<std::string> found;
  look_at_losses(worst, scenario.network, found);
  if (worst.round_trip > kLongestLossyRoundTrip) {
    found.push_back(fmt::format(
        "links that lose packets have a round trip of {}: times were compared with real ones up to "
        "{}, and may be off by a third above",
        duration_text(to_seconds(worst.round_trip)),
        duration_text(to_seconds(kLongestLossyRoundTrip))));
  }
  if (slows_unequal_hosts(scenario)) {
    found.emplace_back(
        "links become slower in mid-run between nodes that send and receive at different rates: "
        "real runs took 10 to 13 % longer than predicted, for their messages do not end together");
  }
  return found;
}

}  // namespace sotto::study

#include <sotto/study/scenario/validated_range.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include <sotto/sim/network/link_trace.h>
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

/// Whether a node sends and receives at different rates.
bool is_unequal(const HostSpec& host) {
  return host.up_bytes_per_s != host.down_bytes_per_s || host.up_trace != host.down_trace;
}

/// The least bandwidth to which a trace becomes slower; kUnlimited where it never does.
double slowest_later(const TracedLink& traced) {
  const LinkTrace& trace = *traced.trace;
  const bool repeats = trace.steps.period != kNever;
  const std::size_t first = repeats ? 0 : StepCursor(trace.steps, traced.start).step();
  double quickest = repeats ? std::ranges::max(trace.bytes_per_s) : 0;
  double slowest = kUnlimited;
  for (const double rate : std::span(trace.bytes_per_s).subspan(first)) {
    slowest = rate < quickest ? std::min(slowest, rate) : slowest;
    quickest = std::max(quickest, rate);
  }
  return slowest * traced.times;
}

/// Looks for links between unequal hosts that become slower in mid-run, below what their nodes'
/// connections let through.
class SlowerLinks {
 public:
  explicit SlowerLinks(const Scenario& scenario) : scenario_(scenario) {}

  bool any() const {
    return std::ranges::any_of(scenario_.hosts, is_unequal) &&
           (changes() || traces() || trunk_changes() || trunk_traces());
  }

 private:
  const HostSpec& host(Rank rank) const { return scenario_.hosts[static_cast<std::size_t>(rank)]; }

  /// A pair of these, both of whose connections are wider than `rate`, and whose link is so.
  template <typename Link>
  bool any_pair(std::span<const Rank> from, std::span<const Rank> to, double rate,
                const Link& is_so) const {
    std::vector<Rank> receivers;
    std::ranges::copy_if(to, std::back_inserter(receivers),
                         [&](Rank rank) { return host(rank).down_bytes_per_s > rate; });
    return std::ranges::any_of(from, [&](Rank sender) {
      return host(sender).up_bytes_per_s > rate && std::ranges::any_of(receivers, [&](Rank rank) {
               return rank != sender && is_so(scenario_.link_between(sender, rank));
             });
    });
  }
  bool changes() const {
    return std::ranges::any_of(scenario_.changes, [&](const LinksChange& change) {
      return change.bytes_per_s &&
             any_pair(change.from, change.to, *change.bytes_per_s,
                      [&](const LinkSpec& link) { return link.bytes_per_s > *change.bytes_per_s; });
    });
  }
  /// The links between these have a trace, and it becomes slower.
  bool traced(std::span<const Rank> from, std::span<const Rank> to, const LinkSpec& of) const {
    const double rate = of.trace == nullptr ? kUnlimited : slowest_later(*of.trace);
    return rate < of.bytes_per_s &&
           any_pair(from, to, rate, [&](const LinkSpec& link) { return link.trace == of.trace; });
  }
  bool traces() const {
    std::vector<Rank> all(static_cast<std::size_t>(scenario_.nodes));
    std::iota(all.begin(), all.end(), 0);
    return traced(all, all, scenario_.link) ||
           std::ranges::any_of(scenario_.between, [&](const LinksBetween& links) {
             return traced(links.from, links.to, links.link);
           });
  }

  /// A trunk is wider than `rate`, and so are the connections at both its ends together.
  bool is_wider(const Trunk& trunk, double rate) const {
    const auto sum = [&](const std::vector<Rank>& ranks, double HostSpec::*way) {
      return std::accumulate(ranks.begin(), ranks.end(), 0.0,
                             [&](double so_far, Rank rank) { return so_far + host(rank).*way; });
    };
    return trunk.link.bytes_per_s > rate && sum(trunk.from, &HostSpec::up_bytes_per_s) > rate &&
           sum(trunk.to, &HostSpec::down_bytes_per_s) > rate;
  }
  bool trunk_changes() const {
    return std::ranges::any_of(scenario_.trunk_changes, [&](const TrunkChange& change) {
      return change.bytes_per_s && std::ranges::any_of(scenario_.trunks, [&](const Trunk& trunk) {
               return trunk.name == change.name && is_wider(trunk, *change.bytes_per_s);
             });
    });
  }
  bool trunk_traces() const {
    return std::ranges::any_of(scenario_.trunks, [&](const Trunk& trunk) {
      return trunk.link.trace != nullptr && is_wider(trunk, slowest_later(*trunk.link.trace));
    });
  }

  const Scenario& scenario_;
};

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
  if (scenario.has_queues()) {
    found.emplace_back(
        "queues may overflow: times of that were not compared with real ones; what is modelled is "
        "tail drop where a connection is held up most");
  }
  if (SlowerLinks(scenario).any()) {
    found.emplace_back(
        "links become slower in mid-run between nodes that send and receive at different rates: "
        "real runs took 10 to 13 % longer than predicted, for their messages do not end together");
  }
  return found;
}

}  // namespace sotto::study

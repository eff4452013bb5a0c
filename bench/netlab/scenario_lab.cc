#include "scenario_lab.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "probe.h"

namespace sotto::netlab {
namespace {

/// What the switch was seen to carry at the declared rate, with some to spare.
constexpr double kFastestLink = 2e9 / 8;
/// Bytes of a full packet; what headers leave is payload.
constexpr double kPacketBytes = 1500;
constexpr double kSegmentBytes = 1448;
/// A packet with one byte in it.
constexpr double kPingBytes = 53;
constexpr int kPings = 5;

/// The narrowest part of the way.
double limit_of(const study::Scenario& scenario, Host from, Host to) {
  return std::min({scenario.link_between(from, to).bytes_per_s,
                   scenario.hosts[static_cast<std::size_t>(from)].up_bytes_per_s,
                   scenario.hosts[static_cast<std::size_t>(to)].down_bytes_per_s});
}

/// Throws Error for what the switch, in user space on one core, is too slow for.
void check_rate_emulable(double bytes_per_s, const std::string& whose) {
  if (bytes_per_s < kUnlimited && bytes_per_s > kFastestLink) {
    throw Error(
        fmt::format("{}: {:g} Gbit/s cannot be emulated, {:g} Gbit/s at most; `sotto simulate` can",
                    whose, 8e-9 * bytes_per_s, 8e-9 * kFastestLink));
  }
}

/// What makes two links alike.
using LinkKind = std::tuple<double, double, SimTime, SimTime, SimTime, double>;

LinkKind kind_of(const study::Scenario& scenario, Host from, Host to) {
  const LinkSpec there = scenario.link_between(from, to);
  const LinkSpec back = scenario.link_between(to, from);
  return {limit_of(scenario, from, to), limit_of(scenario, to, from), there.latency, back.latency,
          there.jitter + back.jitter,   there.loss + back.loss};
}

double ping_s(double bytes_per_s) {
  return bytes_per_s < kUnlimited ? kPingBytes / bytes_per_s : 0;
}

void check_round_trip(const Lab& lab, const study::Scenario& scenario, LinkCheck& check) {
  const LinkSpec there = scenario.link_between(check.from, check.to);
  const LinkSpec back = scenario.link_between(check.to, check.from);
  check.expected_round_trip_s = to_seconds(there.latency + back.latency) +
                                ping_s(limit_of(scenario, check.from, check.to)) +
                                ping_s(limit_of(scenario, check.to, check.from));
  const auto found =
      measure_round_trip(lab, check.from, check.to, kPings, 5 + 10 * check.expected_round_trip_s);
  if (!found.ok()) {
    check.wrong = found.status().message();
    return;
  }
  check.round_trip_s = *found;
  const double slack = kTolerance * check.expected_round_trip_s + kDelaySlack_s +
                       to_seconds(there.jitter + back.jitter);
  if (std::abs(check.round_trip_s - check.expected_round_trip_s) > slack) {
    check.wrong = fmt::format("a round trip takes {:.2f} ms and not {:.2f} ms",
                              1e3 * check.round_trip_s, 1e3 * check.expected_round_trip_s);
  }
}

void check_rate(const Lab& lab, const study::Scenario& scenario, LinkCheck& check) {
  const double limit = limit_of(scenario, check.from, check.to);
  const bool lossy = scenario.link_between(check.from, check.to).loss > 0 ||
                     scenario.link_between(check.to, check.from).loss > 0;
  if (limit == kUnlimited || lossy || !check.good()) {
    return;
  }
  check.expected_bytes_per_s = limit * kSegmentBytes / kPacketBytes;
  // Slow start takes a round trip for each doubling from 10 packets on.
  const double window = std::max(1.0, limit * check.expected_round_trip_s / 10 / kPacketBytes);
  const double warm_up = (3 + std::log2(window)) * check.expected_round_trip_s + 0.1;
  const auto found =
      measure_rate(lab, check.from, check.to, warm_up, std::max(0.3, 150 * kPacketBytes / limit));
  if (!found.ok()) {
    check.wrong = found.status().message();
    return;
  }
  check.bytes_per_s = *found;
  if (std::abs(check.bytes_per_s / check.expected_bytes_per_s - 1) > kTolerance) {
    check.wrong = fmt::format("it carries {:.2f} Mbit/s of payload and not {:.2f} Mbit/s",
                              8e-6 * check.bytes_per_s, 8e-6 * check.expected_bytes_per_s);
  }
}

}  // namespace

void check_emulable(const study::Scenario& scenario) {
  const auto refuse = [](const std::string& what) {
    throw Error(fmt::format("{}; `sotto simulate` can", what));
  };
  if (scenario.nodes < 2 || scenario.nodes > kMostHosts) {
    refuse(fmt::format("{} nodes cannot be emulated, only 2 to {}", scenario.nodes, kMostHosts));
  }
  if (scenario.timing_only) {
    refuse("a scenario with timing-only has no gradients that the real program could take");
  }
  if (!scenario.media.empty()) {
    refuse("a medium that nodes share cannot be emulated");
  }
  if (!scenario.sweep.empty()) {
    refuse("a sweep cannot be emulated");
  }
  if (!scenario.trunks.empty()) {
    refuse(fmt::format("the trunk '{}' cannot be emulated: links are of two nodes",
                       scenario.trunks.front().name));
  }
  if (scenario.has_traces() || !scenario.availability.empty() ||
      scenario.sampling.clients != nullptr) {
    refuse("traces of links and nodes, and hours, cannot be emulated");
  }
  for (const NodeEvent& event : scenario.events) {
    if (event.kind == NodeEvent::Kind::leave) {
      refuse(
          fmt::format("node {} leaves after {:g} s: that cannot be emulated, for the program knows "
                      "no node that "
                      "leaves a run in good order (crash and vanish can)",
                      event.node, to_seconds(event.at)));
    }
  }
  for (Host from = 0; from < scenario.nodes; ++from) {
    for (Host to = 0; to < scenario.nodes; ++to) {
      if (from != to) {
        check_rate_emulable(limit_of(scenario, from, to),
                            fmt::format("the link from node {} to node {}", from, to));
      }
    }
  }
  for (const study::LinksChange& change : scenario.changes) {
    check_rate_emulable(change.bytes_per_s.value_or(kUnlimited),
                        fmt::format("the links that change after {:g} s", to_seconds(change.at)));
  }
}

std::unique_ptr<Lab> make_lab(const study::Scenario& scenario, bool free_net) {
  auto lab = std::make_unique<Lab>(
      LabOptions{.hosts = scenario.nodes, .free_net = free_net, .seed = scenario.task.seed});
  for (Host from = 0; from < scenario.nodes; ++from) {
    const study::HostSpec& host = scenario.hosts[static_cast<std::size_t>(from)];
    lab->set_host(from, host.up_bytes_per_s, host.down_bytes_per_s);
    for (Host to = 0; to < scenario.nodes; ++to) {
      const LinkSpec link = scenario.link_between(from, to);
      lab->set_link(from, to,
                    {.bytes_per_s = link.bytes_per_s,
                     .latency = link.latency,
                     .jitter = link.jitter,
                     .loss = link.loss});
    }
  }
  return lab;
}

std::vector<LinkCheck> check_links(const Lab& lab, const study::Scenario& scenario,
                                   const Edges& edges) {
  std::map<LinkKind, LinkCheck> kinds;
  for (const auto& [from, to] : edges) {
    kinds.try_emplace(kind_of(scenario, from, to), LinkCheck{.from = from, .to = to, .wrong = {}});
  }
  std::vector<LinkCheck> checks;
  for (auto& [kind, check] : kinds) {
    check_round_trip(lab, scenario, check);
    check_rate(lab, scenario, check);
    checks.push_back(check);
  }
  return checks;
}

}  // namespace sotto::netlab

#include "link_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "probe.h"
#include "scenario_network.h"

namespace sotto::netlab {
namespace {

/// Bytes of a full packet; what headers leave is payload.
constexpr double kPacketBytes = 1500;
constexpr double kSegmentBytes = 1448;
/// A packet with one byte in it.
constexpr double kPingBytes = 53;
constexpr int kPings = 5;

/// What makes two links alike.
using LinkKind = std::tuple<double, double, SimTime, SimTime, SimTime, double>;

LinkKind kind_of(const study::Scenario& scenario, Host from, Host to) {
  const LinkSpec there = scenario.way_between(from, to);
  const LinkSpec back = scenario.way_between(to, from);
  return {
      link_limit(scenario, from, to), link_limit(scenario, to, from), there.latency, back.latency,
      there.jitter + back.jitter,     there.loss + back.loss};
}

double ping_s(double bytes_per_s) {
  return bytes_per_s < kUnlimited ? kPingBytes / bytes_per_s : 0;
}

void check_round_trip(const EmulatedNetwork& network, const study::Scenario& scenario,
                      LinkCheck& check) {
  const LinkSpec there = scenario.way_between(check.from, check.to);
  const LinkSpec back = scenario.way_between(check.to, check.from);
  check.expected_round_trip_s = to_seconds(there.latency + back.latency) +
                                ping_s(link_limit(scenario, check.from, check.to)) +
                                ping_s(link_limit(scenario, check.to, check.from));
  const auto found = measure_round_trip(network, check.from, check.to, kPings,
                                        5 + 10 * check.expected_round_trip_s);
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

void check_rate(const EmulatedNetwork& network, const study::Scenario& scenario, LinkCheck& check) {
  const double limit = link_limit(scenario, check.from, check.to);
  const bool lossy = scenario.way_between(check.from, check.to).loss > 0 ||
                     scenario.way_between(check.to, check.from).loss > 0;
  if (limit == kUnlimited || lossy || !check.good()) {
    return;
  }
  check.expected_bytes_per_s = limit * kSegmentBytes / kPacketBytes;
  // Slow start takes a round trip for each doubling from 10 packets on.
  const double window = std::max(1.0, limit * check.expected_round_trip_s / 10 / kPacketBytes);
  const double warm_up = (3 + std::log2(window)) * check.expected_round_trip_s + 0.1;
  const auto found = measure_rate(network, check.from, check.to, warm_up,
                                  std::max(0.3, 150 * kPacketBytes / limit));
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

std::vector<LinkCheck> check_links(const EmulatedNetwork& network, const study::Scenario& scenario,
                                   const Edges& edges) {
  std::map<LinkKind, LinkCheck> kinds;
  for (const auto& [from, to] : edges) {
    kinds.try_emplace(kind_of(scenario, from, to), LinkCheck{.from = from, .to = to, .wrong = {}});
  }
  std::vector<LinkCheck> checks;
  for (auto& [kind, check] : kinds) {
    check_round_trip(network, scenario, check);
    check_rate(network, scenario, check);
    checks.push_back(check);
  }
  return checks;
}

}  // namespace sotto::netlab

#include "scenario_network.h"

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto::netlab {
namespace {

/// What the switch was seen to carry at the declared rate, with some to spare.
constexpr double kFastestLink = 2e9 / 8;

/// Throws Error for what the switch, in user space on one core, is too slow for.
void check_rate_emulable(double bytes_per_s, const std::string& whose) {
  if (bytes_per_s < kUnlimited && bytes_per_s > kFastestLink) {
    throw Error(
        fmt::format("{}: {:g} Gbit/s cannot be emulated, {:g} Gbit/s at most; `sotto simulate` can",
                    whose, 8e-9 * bytes_per_s, 8e-9 * kFastestLink));
  }
}

}  // namespace

double link_limit(const study::Scenario& scenario, Host from, Host to) {
  return std::min({scenario.way_between(from, to).bytes_per_s,
                   scenario.hosts[static_cast<std::size_t>(from)].up_bytes_per_s,
                   scenario.hosts[static_cast<std::size_t>(to)].down_bytes_per_s});
}

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
  if (!scenario.trunk_changes.empty()) {
    refuse(fmt::format("the trunk '{}' changes: only links of two nodes can be changed here",
                       scenario.trunk_changes.front().name));
  }
  for (const study::Trunk& trunk : scenario.trunks) {
    if (!(trunk.link.bytes_per_s > 0)) {
      refuse(fmt::format("the trunk '{}' carries nothing: that cannot be emulated", trunk.name));
    }
  }
  if (scenario.has_queues()) {
    refuse("queues that overflow cannot be emulated: here all have room for what TCP sends");
  }
  if (scenario.has_traces() || !scenario.availability.empty() ||
      scenario.sampling.clients != nullptr) {
    refuse("traces of links and nodes, and hours, cannot be emulated");
  }
  for (const NodeEvent& event : scenario.events) {
    if (event.kind == NodeEvent::Kind::leave) {
      refuse(
          fmt::format("node {} leaves after {:g} s: that cannot be emulated, for the program knows "
                      "no node that leaves a run in good order (crash and vanish can)",
                      event.node, to_seconds(event.at)));
    }
  }
  for (Host from = 0; from < scenario.nodes; ++from) {
    for (Host to = 0; to < scenario.nodes; ++to) {
      if (from != to) {
        check_rate_emulable(link_limit(scenario, from, to),
                            fmt::format("the link from node {} to node {}", from, to));
      }
    }
  }
  for (const study::LinksChange& change : scenario.changes) {
    check_rate_emulable(change.bytes_per_s.value_or(kUnlimited),
                        fmt::format("the links that change after {:g} s", to_seconds(change.at)));
  }
}

std::unique_ptr<EmulatedNetwork> make_network(const study::Scenario& scenario, bool free_net) {
  auto network = std::make_unique<EmulatedNetwork>(
      EmulatedNetworkOptions{.hosts = scenario.nodes,
                             .free_net = free_net,
                             .seed = scenario.task.seed,
                             .congestion = congestion_name(scenario.network.congestion)});
  for (Host from = 0; from < scenario.nodes; ++from) {
    const study::HostSpec& host = scenario.hosts[static_cast<std::size_t>(from)];
    network->set_host(from, host.up_bytes_per_s, host.down_bytes_per_s);
    for (Host to = 0; to < scenario.nodes; ++to) {
      const LinkSpec way = scenario.way_between(from, to);
      network->set_link(from, to,
                        {.bytes_per_s = scenario.link_between(from, to).bytes_per_s,
                         .latency = way.latency,
                         .jitter = way.jitter,
                         .loss = way.loss,
                         .loss_burst = way.loss_burst});
    }
  }
  for (const study::Trunk& trunk : scenario.trunks) {
    if (trunk.link.bytes_per_s < kUnlimited) {
      network->add_trunk(trunk.from, trunk.to, trunk.link.bytes_per_s);
    }
  }
  return network;
}

}  // namespace sotto::netlab

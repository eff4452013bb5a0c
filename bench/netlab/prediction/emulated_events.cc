#include "emulated_events.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <sotto/base/check.h>

namespace sotto::netlab {
namespace {

using Pair = std::pair<Host, Host>;

std::vector<Pair> all_pairs(int hosts) {
  std::vector<Pair> pairs;
  pairs.reserve(static_cast<std::size_t>(hosts) * static_cast<std::size_t>(hosts));
  for (Host from = 0; from < hosts; ++from) {
    for (Host to = 0; to < hosts; ++to) {
      if (from != to) {
        pairs.emplace_back(from, to);
      }
    }
  }
  return pairs;
}

EmulatedEvent::Kind kind_of(NodeEvent::Kind kind) {
  switch (kind) {
    case NodeEvent::Kind::suspend:
      return EmulatedEvent::Kind::suspend;
    case NodeEvent::Kind::resume:
      return EmulatedEvent::Kind::resume;
    case NodeEvent::Kind::crash:
      return EmulatedEvent::Kind::crash;
    case NodeEvent::Kind::vanish:
      return EmulatedEvent::Kind::vanish;
    case NodeEvent::Kind::leave:
      break;
  }
  check(false, "nobody leaves an emulated run");
  return EmulatedEvent::Kind::crash;
}

/// Which pair each link of the scenario's platform joins.
std::map<LinkId, Pair> ends_of_links(const study::Scenario& scenario, const Platform& platform,
                                     const std::vector<Pair>& pairs) {
  std::map<LinkId, Pair> ends;
  for (const auto& [from, to] : pairs) {
    const std::string name = scenario.link_between(from, to).name;
    for (const LinkId link : platform.route(from, to).links) {
      if (platform.links()[link].name == name) {
        ends.emplace(link, Pair(from, to));
      }
    }
  }
  return ends;
}

}  // namespace

std::vector<EmulatedEvent> emulated_events(const study::Scenario& scenario) {
  const auto pairs = all_pairs(scenario.nodes);
  const Platform platform = scenario.platform(pairs);
  const auto ends = ends_of_links(scenario, platform, pairs);
  std::vector<EmulatedEvent> all;
  for (const LinkChange& change : platform.changes()) {
    const auto [from, to] = ends.at(change.link);
    const LinkSpec way = scenario.way_between(from, to);
    const SimTime on_trunks = way.latency - scenario.link_between(from, to).latency;
    all.push_back({.at = change.at,
                   .kind = EmulatedEvent::Kind::link,
                   .host = from,
                   .to = to,
                   .shape = {.bytes_per_s = change.bytes_per_s,
                             .latency = change.latency + on_trunks,
                             .jitter = way.jitter,
                             .loss = way.loss,
                             .loss_burst = way.loss_burst}});
  }
  for (const NodeEvent& event : scenario.events) {
    all.push_back({.at = event.at, .kind = kind_of(event.kind), .host = event.node});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const EmulatedEvent& a, const EmulatedEvent& b) { return a.at < b.at; });
  return all;
}

SimTime last_start(const study::Scenario& scenario) {
  SimTime last = 0;
  for (const NodeSpec& node : scenario.node_specs) {
    last = std::max(last, node.start);
  }
  return last;
}

}  // namespace sotto::netlab

// From a scenario to the platform that the simulator runs on.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/study/scenario/scenario.h>

namespace sotto::study {
namespace {

using Pair = std::pair<Rank, Rank>;
using PairLinks = std::map<Pair, LinkId>;

bool among(const std::vector<Rank>& ranks, Rank rank) {
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

/// Whether `links`, which has lists `from` and `to`, includes the pair.
bool covers(const auto& links, const Pair& pair) {
  return among(links.from, pair.first) && among(links.to, pair.second);
}

bool apart(const Partition& partition, const Pair& pair) {
  const auto part_of = [&](Rank rank) {
    return std::find_if(partition.parts.begin(), partition.parts.end(),
                        [&](const auto& part) { return among(part, rank); });
  };
  const auto from = part_of(pair.first);
  const auto to = part_of(pair.second);
  return from != to && from != partition.parts.end() && to != partition.parts.end();
}

void add_hosts(const Scenario& scenario, Platform& platform) {
  for (Rank rank = 0; rank < scenario.nodes; ++rank) {
    const HostSpec& host = scenario.hosts[static_cast<std::size_t>(rank)];
    if (host.up_bytes_per_s < kUnlimited) {
      (void)platform.set_egress(
          rank, {.name = fmt::format("{} up", rank), .bytes_per_s = host.up_bytes_per_s});
    }
    if (host.down_bytes_per_s < kUnlimited) {
      (void)platform.set_ingress(
          rank, {.name = fmt::format("{} down", rank), .bytes_per_s = host.down_bytes_per_s});
    }
  }
}

/// The links that all from or to a node cross: none, or its medium.
std::map<Rank, std::vector<LinkId>> add_media(const Scenario& scenario, Platform& platform) {
  std::map<Rank, std::vector<LinkId>> of_node;
  for (const SharedMedium& medium : scenario.media) {
    const LinkId link =
        platform.add_link({.name = fmt::format("medium of {}", fmt::join(medium.nodes, ", ")),
                           .bytes_per_s = medium.bytes_per_s});
    for (const Rank node : medium.nodes) {
      of_node[node] = {link};
    }
  }
  return of_node;
}

void add_changes(const Scenario& scenario, const PairLinks& links, Platform& platform) {
  std::vector<LinksChange> changes = scenario.changes;
  std::stable_sort(changes.begin(), changes.end(),
                   [](const LinksChange& a, const LinksChange& b) { return a.at < b.at; });
  for (const auto& [pair, link] : links) {
    const LinkSpec& spec = platform.links()[link];
    LinkChange now = {.link = link, .bytes_per_s = spec.bytes_per_s, .latency = spec.latency};
    for (const LinksChange& change : changes) {
      if (covers(change, pair)) {
        now.at = change.at;
        now.bytes_per_s = change.bytes_per_s.value_or(now.bytes_per_s);
        now.latency = change.latency.value_or(now.latency);
        platform.add_change(now);
      }
    }
  }
  for (const Partition& partition : scenario.partitions) {
    std::vector<LinkId> between;
    for (const auto& [pair, link] : links) {
      if (apart(partition, pair)) {
        between.push_back(link);
      }
    }
    platform.cut(between, partition.at, partition.until);
  }
}

}  // namespace

LinkSpec Scenario::link_between(Rank from, Rank to) const {
  const auto last = std::find_if(between.rbegin(), between.rend(), [&](const LinksBetween& links) {
    return covers(links, {from, to});
  });
  LinkSpec spec = last == between.rend() ? link : last->link;
  spec.name = fmt::format("{} to {}", from, to);
  return spec;
}

Platform Scenario::platform(const std::vector<Pair>& pairs) const {
  Platform platform(nodes);
  add_hosts(*this, platform);
  PairLinks links;
  auto shared = add_media(*this, platform);
  for (const Pair& pair : pairs) {
    const LinkId id = platform.add_link(link_between(pair.first, pair.second));
    std::vector<LinkId> route = shared[pair.first];
    route.push_back(id);
    const auto& last = shared[pair.second];
    route.insert(route.end(), last.begin(), last.end());
    platform.set_route(pair.first, pair.second, std::move(route));
    links.emplace(pair, id);
  }
  add_changes(*this, links, platform);
  return platform;
}

}  // namespace sotto::study

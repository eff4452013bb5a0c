// From a scenario to the platform that the simulator runs on.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/study/scenario/scenario.h>

namespace sotto::study {
namespace {

using Pair = std::pair<Rank, Rank>;
using PairLinks = std::vector<std::pair<Pair, LinkId>>;

bool among(const std::vector<Rank>& ranks, Rank rank) {
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

/// Whether `links`, which has lists `from` and `to`, includes the pair.
bool covers(const auto& links, const Pair& pair) {
  return among(links.from, pair.first) && among(links.to, pair.second);
}

bool apart(const NetworkPartition& partition, const Pair& pair) {
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
    if (host.up_bytes_per_s < kUnlimited || host.up_trace != nullptr) {
      (void)platform.set_egress(rank, {.name = fmt::format("{} up", rank),
                                       .bytes_per_s = host.up_bytes_per_s,
                                       .queue_bytes = host.up_queue_bytes,
                                       .trace = host.up_trace});
    }
    if (host.down_bytes_per_s < kUnlimited || host.down_trace != nullptr) {
      (void)platform.set_ingress(rank, {.name = fmt::format("{} down", rank),
                                        .bytes_per_s = host.down_bytes_per_s,
                                        .queue_bytes = host.down_queue_bytes,
                                        .trace = host.down_trace});
    }
  }
}

/// A link of the platform, and the one beside it that has its trace, on which no event and no cut
/// falls.
struct AddedLink {
  LinkId own = 0;
  std::optional<LinkId> traced;

  void append_to(std::vector<LinkId>& route) const {
    route.push_back(own);
    if (traced) {
      route.push_back(*traced);
    }
  }
};

AddedLink add_link(LinkSpec spec, Platform& platform) {
  const auto trace = std::exchange(spec.trace, nullptr);
  const std::string name = trace == nullptr ? std::string() : spec.name + " as traced";
  const double queue_bytes = spec.queue_bytes;
  AddedLink added{.own = platform.add_link(std::move(spec)), .traced = {}};
  if (trace != nullptr) {
    added.traced = platform.add_link({.name = name, .queue_bytes = queue_bytes, .trace = trace});
  }
  return added;
}

/// The link that the scenario declares for a pair of nodes.
const LinkSpec& declared_link(const Scenario& scenario, const Pair& pair) {
  const auto last = std::find_if(scenario.between.rbegin(), scenario.between.rend(),
                                 [&](const LinksBetween& links) { return covers(links, pair); });
  return last == scenario.between.rend() ? scenario.link : last->link;
}

/// Adds the links between pairs of nodes. Each pair has one of its own where the link has a limit
/// that its messages share, a trace, or changes. Otherwise nothing distinguishes the links that are
/// declared as one, and a million pairs share it.
class PairWires {
 public:
  explicit PairWires(const Scenario& scenario)
      : scenario_(scenario), constant_(scenario.changes.empty() && scenario.partitions.empty()) {}

  AddedLink add(const Pair& pair, Platform& platform) {
    const LinkSpec& declared = declared_link(scenario_, pair);
    if (!constant_ || declared.bytes_per_s < kUnlimited || declared.trace != nullptr) {
      return add_link(scenario_.link_between(pair.first, pair.second), platform);
    }
    const auto [shared, is_new] = shared_.try_emplace(&declared);
    if (is_new) {
      LinkSpec spec = declared;
      spec.name = &declared == &scenario_.link
                      ? std::string("between nodes")
                      : fmt::format("between nodes, {} to {}", pair.first, pair.second);
      shared->second = add_link(std::move(spec), platform);
    }
    return shared->second;
  }

 private:
  const Scenario& scenario_;
  bool constant_;
  std::map<const LinkSpec*, AddedLink> shared_;
};

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

/// The links of the scenario's trunks, in their order.
std::vector<AddedLink> add_trunks(const Scenario& scenario, Platform& platform) {
  std::vector<AddedLink> links;
  links.reserve(scenario.trunks.size());
  for (const Trunk& trunk : scenario.trunks) {
    links.push_back(add_link(trunk.link, platform));
  }
  return links;
}

void add_trunk_changes(const Scenario& scenario, const std::vector<AddedLink>& links,
                       Platform& platform) {
  std::vector<TrunkChange> changes = scenario.trunk_changes;
  std::ranges::stable_sort(changes, {}, &TrunkChange::at);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const LinkSpec& spec = scenario.trunks[i].link;
    LinkChange now = {
        .link = links[i].own, .bytes_per_s = spec.bytes_per_s, .latency = spec.latency};
    for (const TrunkChange& change : changes) {
      if (change.name == scenario.trunks[i].name) {
        now.at = change.at;
        now.bytes_per_s = change.bytes_per_s.value_or(now.bytes_per_s);
        now.latency = change.latency.value_or(now.latency);
        platform.add_change(now);
      }
    }
  }
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
  for (const NetworkPartition& partition : scenario.partitions) {
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

bool Scenario::has_queues() const {
  const auto has = [](const auto& one) { return one.link.queue_bytes < kUnlimited; };
  return has(*this) || std::ranges::any_of(between, has) || std::ranges::any_of(trunks, has) ||
         std::ranges::any_of(hosts, [](const HostSpec& host) {
           return std::min(host.up_queue_bytes, host.down_queue_bytes) < kUnlimited;
         });
}

LinkSpec Scenario::link_between(Rank from, Rank to) const {
  LinkSpec spec = declared_link(*this, {from, to});
  spec.name = fmt::format("{} to {}", from, to);
  return spec;
}

LinkSpec Scenario::way_between(Rank from, Rank to) const {
  LinkSpec way = link_between(from, to);
  for (const Trunk& trunk : trunks) {
    if (covers(trunk, {from, to})) {
      way.bytes_per_s = std::min(way.bytes_per_s, trunk.link.bytes_per_s);
      way.latency = plus(way.latency, trunk.link.latency);
      way.jitter = plus(way.jitter, trunk.link.jitter);
      way.loss_burst = std::max(way.loss > 0 ? way.loss_burst : 0,
                                trunk.link.loss > 0 ? trunk.link.loss_burst : 0);
      way.loss = 1 - (1 - way.loss) * (1 - trunk.link.loss);
    }
  }
  return way;
}

Platform Scenario::platform(const std::vector<Pair>& pairs) const {
  Platform platform(nodes);
  add_hosts(*this, platform);
  PairLinks links;
  const bool change = !changes.empty() || !partitions.empty();
  const auto shared = add_media(*this, platform);
  const std::vector<AddedLink> shared_ways = add_trunks(*this, platform);
  PairWires wires(*this);
  for (const Pair& pair : pairs) {
    const AddedLink added = wires.add(pair, platform);
    std::vector<LinkId> route;
    const auto cross_medium = [&](Rank node) {
      if (const auto medium = shared.find(node); medium != shared.end()) {
        route.insert(route.end(), medium->second.begin(), medium->second.end());
      }
    };
    cross_medium(pair.first);
    for (std::size_t i = 0; i < trunks.size(); ++i) {
      if (covers(trunks[i], pair)) {
        shared_ways[i].append_to(route);
      }
    }
    added.append_to(route);
    cross_medium(pair.second);
    platform.set_route(pair.first, pair.second, route);
    if (change) {
      links.emplace_back(pair, added.own);
    }
  }
  add_changes(*this, links, platform);
  add_trunk_changes(*this, shared_ways, platform);
  return platform;
}

}  // namespace sotto::study

#include <sotto/study/simulation/upgrades.h>

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <sotto/study/scenario/scenario_marks.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

/// "node 3", "nodes 0-2, 5"
std::string nodes_text(const std::vector<Rank>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "node" : "nodes", ranks_text(ranks));
}

/// A trace with twice the bandwidth at each time.
std::shared_ptr<const TracedLink> doubled(const std::shared_ptr<const TracedLink>& traced) {
  TracedLink wider = *traced;
  wider.times *= 2;
  return std::make_shared<const TracedLink>(std::move(wider));
}

/// Adds the upgrades of links: `of` gives those of a scenario that are to change together.
void add_link(const std::string& name, const LinkSpec& link,
              const std::function<std::vector<LinkSpec*>(Scenario&)>& of,
              std::vector<Upgrade>& upgrades) {
  if (link.bytes_per_s < kUnlimited && link.bytes_per_s > 0) {
    const double more = 2 * link.bytes_per_s;
    upgrades.push_back(
        {fmt::format("{}: {}", name, rate_text(more)), [of, more](Scenario& scenario) {
           for (LinkSpec* const one : of(scenario)) {
             one->bytes_per_s = more;
           }
         }});
  }
  if (link.trace != nullptr) {
    upgrades.push_back({fmt::format("{}: its trace twice as wide", name), [of](Scenario& scenario) {
                          for (LinkSpec* const one : of(scenario)) {
                            one->trace = doubled(one->trace);
                          }
                        }});
  }
  if (link.latency > 0) {
    const SimTime less = link.latency / 2;
    upgrades.push_back({fmt::format("{}: {}", name, duration_text(to_seconds(less))),
                        [of, less](Scenario& scenario) {
                          for (LinkSpec* const one : of(scenario)) {
                            one->latency = less;
                            one->jitter = std::min(one->jitter, less);
                          }
                        }});
  }
}

/// Whether `back` is the way back of `there`, as the reader makes two of one entry.
bool way_back(const LinksBetween& there, const LinksBetween& back) {
  return opposite(there, back) && there.link.bytes_per_s == back.link.bytes_per_s &&
         there.link.latency == back.link.latency && there.link.trace == back.link.trace;
}

void add_between(const Scenario& scenario, std::vector<Upgrade>& upgrades) {
  for (std::size_t i = 0; i < scenario.between.size(); ++i) {
    const LinksBetween& links = scenario.between[i];
    const bool both = i + 1 < scenario.between.size() && way_back(links, scenario.between[i + 1]);
    const std::size_t first = i;
    const std::size_t last = both ? i + 1 : i;
    add_link(
        fmt::format("{} {} {} {}", both ? "between" : "from", nodes_text(links.from),
                    both ? "and" : "to", nodes_text(links.to)),
        links.link,
        [first, last](Scenario& changed) {
          std::vector<LinkSpec*> found;
          for (std::size_t k = first; k <= last; ++k) {
            found.push_back(&changed.between[k].link);
          }
          return found;
        },
        upgrades);
    i = last;
  }
}

void add_trunks(const Scenario& scenario, std::vector<Upgrade>& upgrades) {
  std::vector<std::string> seen;
  for (const Trunk& trunk : scenario.trunks) {
    if (std::ranges::find(seen, trunk.name) != seen.end()) {
      continue;
    }
    seen.push_back(trunk.name);
    add_link(
        trunk.name, trunk.link,
        [name = trunk.name](Scenario& changed) {
          std::vector<LinkSpec*> found;
          for (Trunk& one : changed.trunks) {
            if (one.name == name) {
              found.push_back(&one.link);
            }
          }
          return found;
        },
        upgrades);
  }
}

/// Up to this many groups of nodes are upgraded one by one; more than that, all together.
constexpr std::size_t kMostGroups = 8;

/// Nodes whose connections have one bandwidth are upgraded together.
void add_hosts(const Scenario& scenario, double HostSpec::*way, const char* name,
               std::vector<Upgrade>& upgrades) {
  std::map<double, std::vector<Rank>> by_rate;
  for (std::size_t node = 0; node < scenario.hosts.size(); ++node) {
    by_rate[scenario.hosts[node].*way].push_back(static_cast<Rank>(node));
  }
  by_rate.erase(kUnlimited);
  by_rate.erase(0);
  if (by_rate.size() > kMostGroups) {
    upgrades.push_back({fmt::format("{}: all {} rates twice as wide", name, by_rate.size()),
                        [way](Scenario& changed) {
                          for (HostSpec& host : changed.hosts) {
                            host.*way *= 2;
                          }
                        }});
    return;
  }
  for (const auto& [rate, ranks] : by_rate) {
    upgrades.push_back({fmt::format("{} of {}: {}", name, nodes_text(ranks), rate_text(2 * rate)),
                        [way, rate = rate, ranks = ranks](Scenario& changed) {
                          for (const Rank rank : ranks) {
                            changed.hosts[static_cast<std::size_t>(rank)].*way = 2 * rate;
                          }
                        }});
  }
}

/// All connections with a trace of that way are upgraded together.
void add_host_traces(const Scenario& scenario, std::shared_ptr<const TracedLink> HostSpec::*way,
                     const char* name, std::vector<Upgrade>& upgrades) {
  const auto traced = [way](const HostSpec& host) { return host.*way != nullptr; };
  if (std::ranges::any_of(scenario.hosts, traced)) {
    upgrades.push_back(
        {fmt::format("{}: their traces twice as wide", name), [way, traced](Scenario& changed) {
           for (HostSpec& host : changed.hosts) {
             host.*way = traced(host) ? doubled(host.*way) : nullptr;
           }
         }});
  }
}

/// Widens the connections of these nodes both ways: one way alone gains nothing where the other is
/// as narrow.
Upgrade wider_both_ways(std::string name, std::vector<Rank> ranks) {
  return {std::move(name), [ranks = std::move(ranks)](Scenario& changed) {
            for (const Rank rank : ranks) {
              HostSpec& host = changed.hosts[static_cast<std::size_t>(rank)];
              host.up_bytes_per_s *= 2;
              host.down_bytes_per_s *= 2;
            }
          }};
}

void add_connections(const Scenario& scenario, std::vector<Upgrade>& upgrades) {
  const auto limited = [](double rate) { return rate > 0 && rate < kUnlimited; };
  std::map<std::pair<double, double>, std::vector<Rank>> by_rates;
  std::vector<Rank> all;
  for (std::size_t node = 0; node < scenario.hosts.size(); ++node) {
    const HostSpec& host = scenario.hosts[node];
    if (limited(host.up_bytes_per_s) && limited(host.down_bytes_per_s)) {
      by_rates[{host.up_bytes_per_s, host.down_bytes_per_s}].push_back(static_cast<Rank>(node));
      all.push_back(static_cast<Rank>(node));
    }
  }
  if (by_rates.size() > kMostGroups) {
    upgrades.push_back(wider_both_ways(
        fmt::format("connection: all {} rates twice as wide both ways", by_rates.size()), all));
    return;
  }
  for (const auto& [rates, ranks] : by_rates) {
    upgrades.push_back(wider_both_ways(
        fmt::format("connection of {}: twice as wide both ways", nodes_text(ranks)), ranks));
  }
}

/// All connections with traces of both ways are upgraded together.
void add_connection_traces(const Scenario& scenario, std::vector<Upgrade>& upgrades) {
  const auto traced = [](const HostSpec& host) {
    return host.up_trace != nullptr && host.down_trace != nullptr;
  };
  if (std::ranges::any_of(scenario.hosts, traced)) {
    upgrades.push_back(
        {"connection: their traces twice as wide both ways", [traced](Scenario& changed) {
           for (HostSpec& host : changed.hosts) {
             if (traced(host)) {
               host.up_trace = doubled(host.up_trace);
               host.down_trace = doubled(host.down_trace);
             }
           }
         }});
  }
}

/// Clients that are drawn for each exchange bring their own connections.
void widen_clients(Scenario& scenario) {
  auto clients = *scenario.sampling.clients;
  for (Client& client : clients) {
    client.bytes_per_s *= 2;
  }
  scenario.sampling.clients = std::make_shared<const std::vector<Client>>(std::move(clients));
}

void add_all_connections(const Scenario& scenario, std::vector<Upgrade>& upgrades) {
  if (scenario.sampling.clients != nullptr) {
    upgrades.push_back({"connection: all clients' twice as wide", widen_clients});
    return;
  }
  add_hosts(scenario, &HostSpec::up_bytes_per_s, "up", upgrades);
  add_hosts(scenario, &HostSpec::down_bytes_per_s, "down", upgrades);
  add_connections(scenario, upgrades);
  add_host_traces(scenario, &HostSpec::up_trace, "up", upgrades);
  add_host_traces(scenario, &HostSpec::down_trace, "down", upgrades);
  add_connection_traces(scenario, upgrades);
}

void add_media(const Scenario& scenario, std::vector<Upgrade>& upgrades) {
  for (std::size_t i = 0; i < scenario.media.size(); ++i) {
    const SharedMedium& medium = scenario.media[i];
    if (medium.bytes_per_s < kUnlimited) {
      upgrades.push_back({fmt::format("channel of {}: {}", nodes_text(medium.nodes),
                                      rate_text(2 * medium.bytes_per_s)),
                          [i](Scenario& changed) { changed.media[i].bytes_per_s *= 2; }});
    }
  }
}

void add_stragglers(const Scenario& scenario, std::vector<Upgrade>& upgrades) {
  std::map<double, std::vector<Rank>> by_slowdown;
  for (std::size_t node = 0; node < scenario.node_specs.size(); ++node) {
    by_slowdown[scenario.node_specs[node].compute.slowdown].push_back(static_cast<Rank>(node));
  }
  for (const auto& [slowdown, ranks] : by_slowdown) {
    if (slowdown > 1) {
      upgrades.push_back({fmt::format("{}: as quick as the others", nodes_text(ranks)),
                          [ranks = ranks](Scenario& changed) {
                            for (const Rank rank : ranks) {
                              changed.node_specs[static_cast<std::size_t>(rank)].compute.slowdown =
                                  1;
                            }
                          }});
    }
  }
}

/// Nodes whose gradients take longer than those of the node in the middle, where each has a time of
/// its own. Equal times are upgraded together.
void add_capacities(const Scenario& scenario, std::vector<Upgrade>& upgrades) {
  if (scenario.node_specs.empty() || scenario.sampling.clients != nullptr) {
    return;
  }
  std::vector<double> seconds(scenario.node_specs.size());
  std::ranges::transform(scenario.node_specs, seconds.begin(),
                         [](const NodeSpec& node) { return node.compute.seconds; });
  std::map<double, std::vector<Rank>> slower;
  std::vector<double> sorted = seconds;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::ranges::nth_element(sorted, middle);
  const double usual = *middle;
  for (std::size_t node = 0; node < seconds.size(); ++node) {
    if (seconds[node] > usual) {
      slower[seconds[node]].push_back(static_cast<Rank>(node));
    }
  }
  if (slower.size() > kMostGroups) {
    upgrades.push_back(
        {fmt::format("gradients: the {} slower times as the middle one", slower.size()),
         [usual](Scenario& changed) {
           for (NodeSpec& node : changed.node_specs) {
             node.compute.seconds = std::min(node.compute.seconds, usual);
           }
         }});
    return;
  }
  for (const auto& [time, ranks] : slower) {
    upgrades.push_back({fmt::format("{}: as quick as the node in the middle", nodes_text(ranks)),
                        [ranks = ranks, usual](Scenario& changed) {
                          for (const Rank rank : ranks) {
                            changed.node_specs[static_cast<std::size_t>(rank)].compute.seconds =
                                usual;
                          }
                        }});
  }
}

void halve_gradients(Scenario& scenario) {
  for (NodeSpec& node : scenario.node_specs) {
    node.compute.slowdown /= 2;
  }
  if (scenario.sampling.clients != nullptr) {
    auto clients = *scenario.sampling.clients;
    for (Client& client : clients) {
      client.gradient_s /= 2;
    }
    scenario.sampling.clients = std::make_shared<const std::vector<Client>>(std::move(clients));
  }
}

}  // namespace

std::optional<double> UpgradeValue::saved() const {
  return before_s && after_s && *before_s > 0 ? std::optional(1 - *after_s / *before_s)
                                              : std::nullopt;
}

std::vector<Upgrade> upgrades_of(const Scenario& scenario) {
  std::vector<Upgrade> upgrades;
  add_link(
      "link", scenario.link,
      [](Scenario& changed) { return std::vector<LinkSpec*>{&changed.link}; }, upgrades);
  add_between(scenario, upgrades);
  add_trunks(scenario, upgrades);
  add_all_connections(scenario, upgrades);
  add_media(scenario, upgrades);
  add_stragglers(scenario, upgrades);
  add_capacities(scenario, upgrades);
  upgrades.push_back({"gradients: in half the time", halve_gradients});
  return upgrades;
}

std::vector<UpgradeValue> value_upgrades(const Scenario& scenario,
                                         const std::vector<RunOutcome>& outcomes,
                                         const SimulationRequest& request,
                                         const UpgradeListener& listener) {
  const std::vector<Upgrade> upgrades = upgrades_of(scenario);
  std::vector<UpgradeValue> values;
  const std::size_t count = upgrades.size() * scenario.runs.size();
  for (const Upgrade& upgrade : upgrades) {
    Scenario changed = scenario;
    upgrade.apply(changed);
    const auto begins = [&](std::size_t run) {
      if (listener) {
        listener(values.size() + run + 1, count,
                 fmt::format("{}, {}", upgrade.name, scenario.runs[run].shown()));
      }
    };
    const auto better = simulate_runs(changed, request, {.begins = begins, .ends = {}});
    if (request.stop && request.stop()) {
      break;
    }
    const auto before = by_run(outcomes);
    const auto after = by_run(better);
    for (std::size_t run = 0; run < after.size(); ++run) {
      values.push_back({.upgrade = upgrade.name,
                        .run = scenario.runs[run].shown(),
                        .before_s = time_to_target(scenario, before[run], SeedStatistic::first),
                        .after_s = time_to_target(changed, after[run], SeedStatistic::first)});
    }
  }
  return values;
}

}  // namespace sotto::study

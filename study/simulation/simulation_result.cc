#include <sotto/study/simulation/simulation_result.h>

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <sotto/study/interruption.h>
#include <sotto/study/units.h>
#include <sotto/topology/node_groups.h>

namespace sotto::study {
namespace {

constexpr std::size_t kLinksShown = 64;

}  // namespace

double SimulationResult::bytes_per_node() const {
  double total = 0;
  for (const std::uint64_t bytes : bytes_sent) {
    total += static_cast<double>(bytes);
  }
  return bytes_sent.empty() ? 0 : total / static_cast<double>(bytes_sent.size());
}

std::optional<double> SimulationResult::bytes_within_groups_per_node() const {
  if (settings == nullptr || settings->run.optimizer.groups.empty()) {
    return std::nullopt;
  }
  const NodeGroups groups(settings->run.optimizer.groups);
  double bytes = 0;
  for (const EdgeReport& edge : edges) {
    const bool within = groups.group_of(edge.from) == groups.group_of(edge.to);
    bytes += within ? static_cast<double>(edge.bytes) : 0;
  }
  return bytes / nodes;
}

std::string SimulationResult::early_end() const {
  if (interrupted) {
    return kInterrupted;
  }
  return faults.empty() ? std::string() : faults.front().fault;
}

PhaseShares phase_shares(const SimulationReport& report) {
  double whole = 0;
  PhaseShares sums;
  for (const NodeReport& node : report.nodes) {
    whole += static_cast<double>(node.end - node.start);
    sums.compute += static_cast<double>(node.compute);
    sums.codec += static_cast<double>(node.codec);
    sums.wire += static_cast<double>(node.wire);
    sums.idle += static_cast<double>(node.idle);
  }
  whole = whole > 0 ? whole : 1;
  return {sums.compute / whole, sums.codec / whole, sums.wire / whole, sums.idle / whole};
}

std::vector<LinkUse> busiest_links(const SimulationReport& report, const Platform& platform) {
  std::vector<LinkReport> links(std::min(report.links.size(), kLinksShown));
  std::partial_sort_copy(report.links.begin(), report.links.end(), links.begin(), links.end(),
                         [](const LinkReport& a, const LinkReport& b) {
                           return a.utilisation > b.utilisation ||
                                  (a.utilisation == b.utilisation && a.link < b.link);
                         });
  std::vector<LinkUse> uses;
  uses.reserve(links.size());
  for (const LinkReport& link : links) {
    uses.push_back({platform.links()[link.link].name, link.bytes, link.utilisation});
  }
  return uses;
}

Staleness staleness_of(const SimulationReport& report, bool stand_ins) {
  std::uint64_t sum = 0;
  std::uint64_t most = 0;
  std::uint64_t gradients = 0;
  for (const NodeReport& node : report.nodes) {
    sum += node.counters.staleness;
    most = std::max(most, node.counters.most_stale);
    gradients += node.rounds;
  }
  Staleness found = {.mean = {}, .most = {}, .largest_lead = report.largest_lead};
  if (!stand_ins) {
    found.mean = gradients > 0 ? static_cast<double>(sum) / static_cast<double>(gradients) : 0;
    found.most = most;
  }
  return found;
}

std::vector<SimulatedFault> faults_of(const SimulationReport& report) {
  std::vector<std::size_t> failed;
  for (std::size_t node = 0; node < report.nodes.size(); ++node) {
    if (!report.nodes[node].status.ok()) {
      failed.push_back(node);
    }
  }
  std::stable_sort(failed.begin(), failed.end(), [&](std::size_t a, std::size_t b) {
    return report.nodes[a].end < report.nodes[b].end;
  });
  std::vector<SimulatedFault> faults;
  faults.reserve(failed.size());
  for (const std::size_t node : failed) {
    faults.push_back({static_cast<Rank>(node), exact_seconds(report.nodes[node].end),
                      report.nodes[node].status.message()});
  }
  return faults;
}

std::optional<double> time_that_counts(const Scenario& scenario, const SimulationResult& result) {
  if (scenario.target.given()) {
    return result.time_to_target_s;
  }
  return result.early_end().empty() ? std::optional(result.virtual_s) : std::nullopt;
}

std::vector<EdgeLoad> edge_loads(const SimulationReport& report, const Platform& platform) {
  std::uint64_t most = 1;
  for (const EdgeReport& edge : report.edges) {
    most = std::max(most, edge.bytes);
  }
  std::vector<EdgeLoad> loads;
  loads.reserve(report.edges.size());
  for (const EdgeReport& edge : report.edges) {
    EdgeLoad& load = loads.emplace_back(EdgeLoad{.from = edge.from, .to = edge.to, .tooltip = {}});
    load.volume = static_cast<double>(edge.bytes) / static_cast<double>(most);
    load.tooltip =
        fmt::format("{} to {}: {} in {}", edge.from, edge.to,
                    amount(static_cast<double>(edge.bytes)), counted(edge.frames, "frame"));
    for (const LinkId id : platform.route(edge.from, edge.to).links) {
      const LinkReport& link = report.links[id];
      const double own = link.bytes > 0 ? static_cast<double>(edge.bytes) / link.bytes : 0;
      load.load = std::max(load.load, std::min(own, 1.0) * link.utilisation);
      load.tooltip +=
          fmt::format("; link {} {} busy", platform.links()[id].name, percent(link.utilisation));
    }
  }
  return loads;
}

std::vector<NodeLoad> node_loads(const SimulationReport& report, const Platform& platform) {
  std::vector<NodeLoad> loads(report.nodes.size());
  bool any = false;
  for (const LinkReport& link : report.links) {
    const std::string& name = platform.links()[link.link].name;
    const std::size_t blank = name.find(' ');
    const std::string_view way = std::string_view(name).substr(std::min(blank + 1, name.size()));
    if (blank == std::string::npos || (way != "up" && way != "down")) {
      continue;
    }
    NodeLoad& load = loads[std::stoul(name)];
    load.load = std::max(load.load, link.utilisation);
    load.tooltip += fmt::format("{}{} {} busy", load.tooltip.empty() ? "" : ", ", way,
                                percent(link.utilisation));
    any = true;
  }
  return any ? loads : std::vector<NodeLoad>{};
}

}  // namespace sotto::study

#include "simulated_result.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "quality.h"
#include "units.h"

namespace sotto::cli {
namespace {

constexpr std::size_t kLinksShown = 64;

}  // namespace

Json fractions_json(const SimulationReport& report) {
  double whole = 0;
  double compute = 0;
  double codec = 0;
  double wire = 0;
  double idle = 0;
  for (const NodeReport& node : report.nodes) {
    whole += static_cast<double>(node.end - node.start);
    compute += static_cast<double>(node.compute);
    codec += static_cast<double>(node.codec);
    wire += static_cast<double>(node.wire);
    idle += static_cast<double>(node.idle);
  }
  whole = whole > 0 ? whole : 1;
  return {{"compute", compute / whole},
          {"codec", codec / whole},
          {"wire", wire / whole},
          {"idle", idle / whole}};
}

Json links_json(const SimulationReport& report, const Platform& platform) {
  std::vector<LinkReport> links = report.links;
  std::stable_sort(links.begin(), links.end(), [](const LinkReport& a, const LinkReport& b) {
    return a.utilisation > b.utilisation;
  });
  links.resize(std::min(links.size(), kLinksShown));
  Json shown = Json::array();
  for (const LinkReport& link : links) {
    shown.push_back({{"name", platform.links()[link.link].name},
                     {"bytes", link.bytes},
                     {"utilisation", link.utilisation}});
  }
  return shown;
}

Json staleness_json(const SimulationReport& report, bool rehearsed) {
  std::uint64_t sum = 0;
  std::uint64_t most = 0;
  std::uint64_t gradients = 0;
  for (const NodeReport& node : report.nodes) {
    sum += node.counters.staleness;
    most = std::max(most, node.counters.most_stale);
    gradients += node.rounds;
  }
  const double mean = gradients > 0 ? static_cast<double>(sum) / static_cast<double>(gradients) : 0;
  return {{"mean", rehearsed ? Json() : Json(mean)},
          {"most", rehearsed ? Json() : Json(most)},
          {"largest_lead", report.largest_lead}};
}

Json faults_json(const SimulationReport& report) {
  std::vector<std::size_t> failed;
  for (std::size_t node = 0; node < report.nodes.size(); ++node) {
    if (!report.nodes[node].status.ok()) {
      failed.push_back(node);
    }
  }
  std::stable_sort(failed.begin(), failed.end(), [&](std::size_t a, std::size_t b) {
    return report.nodes[a].end < report.nodes[b].end;
  });
  Json faults = Json::array();
  for (const std::size_t node : failed) {
    faults.push_back({{"node", node},
                      {"virtual_s", exact_seconds(report.nodes[node].end)},
                      {"fault", report.nodes[node].status.message()}});
  }
  return faults;
}

std::string early_end(const Json& result) {
  const Json& faults = result.at("faults");
  return faults.empty() ? "" : faults.front().at("fault").get<std::string>();
}

Json time_to_target(const Scenario& scenario, const std::vector<HistoryPoint>& history) {
  const auto target = scenario.target_quality();
  if (!target && !scenario.target_loss) {
    return nullptr;
  }
  for (const HistoryPoint& point : history) {
    if ((!target || quality_of(point) >= *target) &&
        (!scenario.target_loss || point.loss <= *scenario.target_loss)) {
      return point.time_s;
    }
  }
  return nullptr;
}

Json edges_json(const SimulationReport& report) {
  Json edges = Json::array();
  for (const EdgeReport& edge : report.edges) {
    edges.push_back(
        {{"from", edge.from}, {"to", edge.to}, {"bytes", edge.bytes}, {"frames", edge.frames}});
  }
  return edges;
}

Json history_json(const std::vector<HistoryPoint>& history) {
  Json points = Json::array();
  for (const HistoryPoint& point : history) {
    points.push_back({{"round", point.round},
                      {"virtual_s", point.time_s},
                      {"loss", point.loss},
                      {"consensus_distance", point.consensus_distance},
                      {"bytes_per_node", point.bytes_per_node}});
    add_quality(point, points.back());
  }
  return points;
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

}  // namespace sotto::cli

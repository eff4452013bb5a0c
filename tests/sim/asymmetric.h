// Jobs in which all times are known: light stand-ins, links that differ by direction.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <sotto/sim/simulator.h>
#include <sotto/sim/timing_job.h>
#include <sotto/topology/topology.h>

namespace sotto {

/// A link from one host to another, without limit of bandwidth.
struct OneWay {
  Rank from = 0;
  Rank to = 0;
  SimTime latency = 0;
};

/// Link k of the platform is ways[k].
inline Platform platform_of(int hosts, const std::vector<OneWay>& ways) {
  Platform platform(hosts);
  for (const OneWay& way : ways) {
    platform.set_route(way.from, way.to, {platform.add_link({.latency = way.latency})});
  }
  return platform;
}

inline std::shared_ptr<const Topology> graph_of(int nodes,
                                                const std::vector<std::pair<Rank, Rank>>& edges) {
  std::vector<WeightedEdge> weighted;
  weighted.reserve(edges.size());
  for (const auto& [from, to] : edges) {
    weighted.push_back({from, to, 0.1});
  }
  return std::make_shared<Topology>("by hand", nodes,
                                    std::vector<std::vector<WeightedEdge>>{weighted});
}

/// Gradients take no time unless options say so, and frames of `frame_bytes` follow them, of as
/// many of float32.
inline SimulationReport play(const std::shared_ptr<const Topology>& graph, const Platform& platform,
                             const SimulatorOptions& options, std::size_t frame_bytes = 1000) {
  const StandInShape shape = {
      .timing = StandInShape::Timing::blocking, .frame_bytes = frame_bytes, .elements = 250};
  return Simulator(platform, options, make_stand_ins(shape, graph)).run();
}

}  // namespace sotto

#include <sotto/study/json/measured_network.h>

#include <cstddef>

namespace sotto::study {
namespace {

/// A node without an edge has no bandwidth.
Json rate_json(double bytes_per_s) { return bytes_per_s > 0 ? Json(bytes_per_s) : Json(nullptr); }
double rate_in(const Json& json) { return json.is_null() ? 0 : json.get<double>(); }

}  // namespace

Json network_json(const MeasuredNetwork& network) {
  Json edges = Json::array();
  for (const MeasuredEdge& edge : network.edges) {
    edges.push_back({{"from", edge.from},
                     {"to", edge.to},
                     {"latency_s", edge.latency_s},
                     {"bandwidth_bytes_per_s", edge.bandwidth_bytes_per_s},
                     {"bytes", edge.bytes}});
  }
  Json hosts = Json::array();
  for (std::size_t node = 0; node < network.hosts.size(); ++node) {
    hosts.push_back({{"node", node},
                     {"up_bytes_per_s", rate_json(network.hosts[node].up_bytes_per_s)},
                     {"down_bytes_per_s", rate_json(network.hosts[node].down_bytes_per_s)}});
  }
  return {{"edges", edges}, {"hosts", hosts}};
}

MeasuredNetwork network_in(const Json& json) {
  MeasuredNetwork network;
  for (const Json& edge : json.at("edges")) {
    network.edges.push_back(
        {.from = edge.at("from").get<Rank>(),
         .to = edge.at("to").get<Rank>(),
         .latency_s = edge.at("latency_s").get<double>(),
         .bandwidth_bytes_per_s = edge.at("bandwidth_bytes_per_s").get<double>(),
         .bytes = edge.at("bytes").get<std::uint64_t>()});
  }
  for (const Json& host : json.at("hosts")) {
    network.hosts.push_back({.up_bytes_per_s = rate_in(host.at("up_bytes_per_s")),
                             .down_bytes_per_s = rate_in(host.at("down_bytes_per_s"))});
  }
  return network;
}

}  // namespace sotto::study

#include "graph_study.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace sotto::study {
namespace {

constexpr std::size_t kMostEdges = 20000;

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// The mixing matrix of one round, without it for graphs of very many edges.
void add_mixing(const Topology& topology, Round round, Json& result) {
  result["round"] = round;
  result["self_weights"] = nullptr;
  result["weights"] = nullptr;
  if (topology.edge_count(round) > kMostEdges) {
    return;
  }
  Json self = Json::array();
  Json weights = Json::array();
  for (Rank node = 0; node < topology.nodes(); ++node) {
    self.push_back(topology.self_weight(node, round));
    for (const Edge& edge : topology.in_edges(node, round)) {
      weights.push_back({{"from", edge.peer}, {"to", node}, {"weight", edge.weight}});
    }
  }
  result["self_weights"] = std::move(self);
  result["weights"] = std::move(weights);
}

}  // namespace

Json graph_study_json(const GraphStudy& study, Round round) {
  const Topology& topology = *study.topology;
  const GraphProperties& graph = study.properties;
  Json result = {
      {"topology", topology.name()},
      {"nodes", topology.nodes()},
      {"directed", graph.directed},
      {"edges", graph.edges},
      {"degree_min", graph.degree_min},
      {"degree_max", graph.degree_max},
      {"connected", graph.connected},
      {"rho", study.spectrum.rho},
      {"spectral_gap", study.spectrum.spectral_gap},
      {"mu", study.spectrum.mu},
      {"dcd_alpha_limit",
       study.suits_dcd ? finite_or_null(study.spectrum.dcd_alpha_limit) : Json(nullptr)},
      {"period", topology.period()},
      {"symmetric", graph.symmetric},
      {"row_stochastic", graph.row_stochastic},
      {"column_stochastic", graph.column_stochastic},
  };
  Json& compressors = result["compressors"] = Json::array();
  for (const CompressorFit& fit : study.compressors) {
    compressors.push_back({{"compressor", fit.compressor},
                           {"unbiased", fit.unbiased},
                           {"alpha", fit.alpha},
                           {"alpha_worst", finite_or_null(fit.worst_alpha)},
                           {"within_theory", fit.within_theory}});
  }
  add_mixing(topology, round, result);
  return result;
}

}  // namespace sotto::study

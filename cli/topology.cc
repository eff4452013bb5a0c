// `sotto topology`: inspects a graph, sets DCD's theory against the compressors, draws it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/study/train/train_options.h>
#include <sotto/topology/drawing.h>
#include <sotto/topology/properties.h>
#include <sotto/topology/registry.h>
#include <sotto/topology/spectrum.h>
#include <sotto/trainers/files/result_file.h>

#include "commands.h"

namespace sotto::cli {
namespace {

constexpr const char* kTopologyExamples =
    "Examples:\n"
    "  sotto topology ring --nodes 8\n"
    "  sotto topology torus:4x8 --svg torus.svg\n"
    "  sotto topology one-peer-exponential --nodes 16 --round 2\n"
    "  sotto topology file:graph.csv --weighting metropolis --lazy --json graph.json\n"
    "  sotto topology regular:4 --nodes 64 --seed 7 --compressor quant:3 --compressor randk:0.25";

/// How much of the mixing matrix is printed, and how much of it goes into JSON.
constexpr Rank kPrintedNodes = 16;
constexpr std::size_t kPrintedPeers = 8;
constexpr std::size_t kMaxJsonEdges = 20000;
/// Enough for an α that is steady in its second digit.
constexpr std::size_t kMeasuredElements = 16384;
constexpr int kMeasuredSamples = 4;

constexpr const char* kDefaultCompressors[] = {"quant:8",  "quant:6",   "quant:4",   "quant:2",
                                               "quant:1",  "randk:0.5", "randk:0.1", "sign",
                                               "topk:0.1", "topk:0.01"};

struct TopologyRequest {
  console::CommonOptions common;
  std::string spec;
  std::optional<int> nodes;
  std::string weighting;
  bool lazy = false;
  Round round = 0;
  std::string svg;
  std::vector<std::string> compressors;
};

/// A compressor held against the limit of DCD-PSGD's theory.
struct Candidate {
  std::string spec;
  bool unbiased = false;
  double measured = 0;  ///< α on Gaussian vectors
  double worst = 0;     ///< α of the contract

  bool within(double limit) const { return unbiased && measured < limit; }
};

std::shared_ptr<const Topology> build(const TopologyRequest& request) {
  const std::string& spec = request.spec;
  if (spec.empty()) {
    throw Error("topology", "name a graph, e.g. `sotto topology ring --nodes 8`");
  }
  TopologyOptions options;
  if (!request.weighting.empty()) {
    options.weighting = parse_weighting(request.weighting);
  }
  options.lazy = request.lazy;
  options.seed = request.common.seed;
  const int otherwise = fixes_nodes(spec) ? 0 : study::kDefaultNodes;
  return make_topology(spec, request.nodes.value_or(otherwise), options);
}

std::vector<Candidate> measure(const TopologyRequest& request) {
  std::vector<std::string> specs = request.compressors;
  if (specs.empty()) {
    specs.assign(std::begin(kDefaultCompressors), std::end(kDefaultCompressors));
  }
  std::vector<Candidate> candidates;
  for (const std::string& spec : specs) {
    const auto compressor = make_compressor(spec, ContractKind::unbiased);
    const Contract contract = compressor->contract(kMeasuredElements);
    candidates.push_back(
        {spec, contract.unbiased,
         measure_alpha(*compressor, kMeasuredElements, kMeasuredSamples, request.common.seed),
         contract.alpha});
  }
  return candidates;
}

const char* yes_no(bool value) { return value ? "yes" : "no"; }

std::string weights_line(const GraphProperties& graph) {
  if (graph.doubly_stochastic()) {
    return graph.symmetric ? "symmetric, doubly stochastic" : "doubly stochastic, not symmetric";
  }
  return graph.row_stochastic      ? "rows sum to 1, columns do not"
         : graph.column_stochastic ? "columns sum to 1, rows do not (for push-sum)"
                                   : "neither rows nor columns sum to 1";
}

/// DCD's proof is for symmetric weights that stay.
bool suits_dcd(const Topology& topology) {
  return properties(topology).symmetric && !topology.time_varying();
}

void print_summary(const console::Output& output, const Topology& topology,
                   const Spectrum& figures) {
  const GraphProperties graph = properties(topology);
  std::vector<std::vector<std::string>> rows = {
      {"nodes", fmt::to_string(topology.nodes())},
      {"edges", fmt::format("{}{}", graph.edges, graph.directed ? ", directed" : "")},
      {graph.directed ? "in-degree" : "degree",
       graph.degree_min == graph.degree_max
           ? fmt::to_string(graph.degree_min)
           : fmt::format("{} to {}", graph.degree_min, graph.degree_max)},
      {"connected", yes_no(graph.connected)},
      {"weights", weights_line(graph)},
  };
  if (topology.time_varying()) {
    rows.push_back({"period", fmt::format("{} rounds; the figures below are those of their product",
                                          topology.period())});
  }
  rows.push_back({"ρ", fmt::format("{:.6g}", std::abs(figures.rho) < 1e-7 ? 0.0 : figures.rho)});
  rows.push_back({"spectral gap", fmt::format("{:.6g}", figures.spectral_gap)});
  rows.push_back({"μ", fmt::format("{:.6g}", figures.mu)});
  if (suits_dcd(topology)) {
    rows.push_back({"DCD's α limit", std::isfinite(figures.dcd_alpha_limit)
                                         ? fmt::format("{:.4g}", figures.dcd_alpha_limit)
                                         : "none: one node mixes with nobody"});
  }
  output.table({"topology", topology.name()}, rows);
}

void print_mixing(const console::Output& output, const Topology& topology, Round round) {
  std::vector<std::vector<std::string>> rows;
  for (Rank node = 0; node < std::min(topology.nodes(), kPrintedNodes); ++node) {
    const auto edges = topology.in_edges(node, round);
    std::string heard;
    for (std::size_t k = 0; k < std::min(edges.size(), kPrintedPeers); ++k) {
      heard += fmt::format("{}{} × {:.4g}", k > 0 ? ", " : "", edges[k].peer, edges[k].weight);
    }
    if (edges.size() > kPrintedPeers) {
      heard += fmt::format(", and {} more", edges.size() - kPrintedPeers);
    }
    rows.push_back({fmt::to_string(node), fmt::format("{:.4g}", topology.self_weight(node, round)),
                    heard.empty() ? "nobody" : heard});
  }
  output.line("");
  output.table(
      {"node", "own", topology.time_varying() ? fmt::format("hears in round {}", round) : "hears"},
      rows);
  if (topology.nodes() > kPrintedNodes) {
    output.line(
        fmt::format("… and {} more nodes; --json has them", topology.nodes() - kPrintedNodes));
  }
}

void print_candidates(const console::Output& output, const std::vector<Candidate>& candidates,
                      double limit) {
  bool outside = false;
  std::vector<std::vector<std::string>> rows;
  for (const Candidate& candidate : candidates) {
    const bool within = candidate.within(limit);
    outside |= candidate.unbiased && !within;
    rows.push_back({candidate.spec, fmt::format("{:.4f}", candidate.measured),
                    std::isfinite(candidate.worst) ? fmt::format("{:.4f}", candidate.worst) : "-",
                    !candidate.unbiased       ? "biased: for DeepSqueeze and CHOCO, not for DCD"
                    : !within                 ? "outside"
                    : candidate.worst < limit ? "within theory"
                                              : "within theory, though not at worst"});
  }
  output.line("");
  output.table({"compressor", "α measured", "α at worst", "DCD-PSGD on this graph"}, rows);
  if (outside) {
    output.line("Outside often still converges: the bound is conservative.");
  }
}

/// Why models would not come together on this graph; empty when they do.
std::string_view obstacle(const Topology& topology, const Spectrum& figures) {
  constexpr double kNoGap = 1e-9;
  const GraphProperties graph = properties(topology);
  if (!graph.connected) {
    return graph.directed
               ? "Not strongly connected: what some nodes know never reaches some others, so that "
                 "their models cannot agree. Training refuses such a graph; add edges."
               : "Not connected: its parts never hear of each other, so that their models cannot "
                 "agree. Training refuses such a graph; add edges between the parts.";
  }
  return graph.doubly_stochastic() && topology.nodes() > 1 && figures.spectral_gap < kNoGap
             ? "No spectral gap: the nodes' models would not come together; --lazy may help."
             : "";
}

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// The mixing matrix of one round, without it for graphs of very many edges.
void add_mixing(const Topology& topology, Round round, Json& result) {
  result["round"] = round;
  result["self_weights"] = nullptr;
  result["weights"] = nullptr;
  if (topology.edge_count(round) > kMaxJsonEdges) {
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

Json to_json(const TopologyRequest& request, const Topology& topology, const Spectrum& figures,
             const std::vector<Candidate>& candidates) {
  const GraphProperties graph = properties(topology);
  Json result = {
      {"sotto", SOTTO_VERSION},
      {"topology", topology.name()},
      {"nodes", topology.nodes()},
      {"directed", graph.directed},
      {"edges", graph.edges},
      {"degree_min", graph.degree_min},
      {"degree_max", graph.degree_max},
      {"connected", graph.connected},
      {"rho", figures.rho},
      {"spectral_gap", figures.spectral_gap},
      {"mu", figures.mu},
      {"dcd_alpha_limit",
       suits_dcd(topology) ? finite_or_null(figures.dcd_alpha_limit) : Json(nullptr)},
      {"period", topology.period()},
      {"symmetric", graph.symmetric},
      {"row_stochastic", graph.row_stochastic},
      {"column_stochastic", graph.column_stochastic},
      {"lazy", request.lazy},
      {"seed", request.common.seed},
  };
  Json& compressors = result["compressors"] = Json::array();
  for (const Candidate& candidate : candidates) {
    compressors.push_back(
        {{"compressor", candidate.spec},
         {"unbiased", candidate.unbiased},
         {"alpha", candidate.measured},
         {"alpha_worst", finite_or_null(candidate.worst)},
         {"within_theory", suits_dcd(topology) && candidate.within(figures.dcd_alpha_limit)}});
  }
  add_mixing(topology, request.round, result);
  return result;
}

int run(const TopologyRequest& request) {
  check_writable("--svg", request.svg);
  const console::Output output(request.common);
  const auto topology = build(request);
  const Spectrum figures = spectrum(*topology);
  const std::vector<Candidate> candidates = measure(request);
  if (!request.svg.empty()) {
    write_result_file("--svg", request.svg, draw_svg(*topology));
  }
  print_summary(output, *topology, figures);
  print_mixing(output, *topology, request.round);
  if (const auto why = obstacle(*topology, figures); !why.empty()) {
    output.line(fmt::format("\n{}", why));
  } else if (suits_dcd(*topology)) {
    print_candidates(output, candidates, figures.dcd_alpha_limit);
  } else if (properties(*topology).symmetric) {
    output.line(
        "\nDCD-PSGD runs on this graph, and hands whole models over along edges that are new; its "
        "theory is for graphs that stay.");
  } else {
    output.line("\nDCD-PSGD needs symmetric weights: this graph is not for it.");
  }
  output.json(to_json(request, *topology, figures, candidates));
  return console::kDone;
}

}  // namespace

console::Command add_topology_command(CLI::App& program) {
  auto request = std::make_shared<TopologyRequest>();
  CLI::App* command = program.add_subcommand(
      "topology", "Inspects a graph: degrees, weights, spectral gap, what DCD may compress with");
  console::OptionGroup graph(*command, "The graph");
  graph.option("spec,--topology", request->spec, "SPEC", "The graph; `sotto list` shows all");
  graph.count("--nodes", request->nodes, "N",
              "Number of nodes; 8, or what a file, grid or torus says by itself",
              std::numeric_limits<int>::max());
  graph.option("--weighting", request->weighting, "NAME",
               "Mixing weights: metropolis, uniform (rows sum to 1) or shares (columns do)");
  graph.flag("--lazy", request->lazy, "Mix with (I + W) / 2");
  graph.count("--round", request->round, "T", "Show the weights of this round");
  graph.list("--compressor", request->compressors, "SPEC",
             "Set DCD's limit against this compressor; may be given repeatedly");
  graph.option("--svg", request->svg, "FILE", "Draw the graph into FILE");
  add_common_options(*command, request->common);
  command->footer(kTopologyExamples);
  return {command, [request] { return run(*request); }};
}

}  // namespace sotto::cli

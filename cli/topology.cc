// `sotto topology`: shows a graph's study (study/measure/graph_study.h), and draws the graph.
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
#include <sotto/base/result_file.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/study/json/graph_study.h>
#include <sotto/study/train/train_options.h>
#include <sotto/topology/drawing.h>
#include <sotto/topology/registry.h>

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

/// How much of the mixing matrix is printed.
constexpr Rank kPrintedNodes = 16;
constexpr std::size_t kPrintedPeers = 8;

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

const char* yes_no(bool value) { return value ? "yes" : "no"; }

std::string weights_line(const GraphProperties& graph) {
  if (graph.doubly_stochastic()) {
    return graph.symmetric ? "symmetric, doubly stochastic" : "doubly stochastic, not symmetric";
  }
  return graph.row_stochastic      ? "rows sum to 1, columns do not"
         : graph.column_stochastic ? "columns sum to 1, rows do not (for push-sum)"
                                   : "neither rows nor columns sum to 1";
}

void print_summary(const console::Output& output, const study::GraphStudy& study) {
  const Topology& topology = *study.topology;
  const GraphProperties& graph = study.properties;
  const Spectrum& figures = study.spectrum;
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
  if (study.suits_dcd) {
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

void print_compressors(const console::Output& output, const study::GraphStudy& study) {
  bool outside = false;
  std::vector<std::vector<std::string>> rows;
  for (const study::CompressorFit& fit : study.compressors) {
    outside |= fit.unbiased && !fit.within_theory;
    rows.push_back({fit.compressor, fmt::format("{:.4f}", fit.alpha),
                    std::isfinite(fit.worst_alpha) ? fmt::format("{:.4f}", fit.worst_alpha) : "-",
                    !fit.unbiased        ? "biased: for DeepSqueeze and CHOCO, not for DCD"
                    : !fit.within_theory ? "outside"
                    : fit.worst_alpha < study.spectrum.dcd_alpha_limit
                        ? "within theory"
                        : "within theory, though not at worst"});
  }
  output.line("");
  output.table({"compressor", "α measured", "α at worst", "DCD-PSGD on this graph"}, rows);
  if (outside) {
    output.line("Outside often still converges: the bound is conservative.");
  }
}

/// Why models would not come together on this graph; empty when they do.
std::string_view obstacle(const study::GraphStudy& study) {
  switch (study.obstacle) {
    case study::GraphObstacle::none:
      return "";
    case study::GraphObstacle::no_gap:
      return "No spectral gap: the nodes' models would not come together; --lazy may help.";
    case study::GraphObstacle::not_connected:
      break;
  }
  return study.properties.directed
             ? "Not strongly connected: what some nodes know never reaches some others, so that "
               "their models cannot agree. Training refuses such a graph; add edges."
             : "Not connected: its parts never hear of each other, so that their models cannot "
               "agree. Training refuses such a graph; add edges between the parts.";
}

int run(const TopologyRequest& request) {
  check_writable("svg", request.svg);
  const console::Output output(request.common);
  const auto compressors =
      request.compressors.empty() ? study::usual_compressors() : request.compressors;
  const study::GraphStudy study =
      study::study_graph(build(request), compressors, request.common.seed);
  if (!request.svg.empty()) {
    write_result_file("svg", request.svg, draw_svg(*study.topology));
  }
  print_summary(output, study);
  print_mixing(output, *study.topology, request.round);
  if (const auto why = obstacle(study); !why.empty()) {
    output.line(fmt::format("\n{}", why));
  } else if (study.suits_dcd) {
    print_compressors(output, study);
  } else if (study.properties.symmetric) {
    output.line(
        "\nDCD-PSGD runs on this graph, and hands whole models over along edges that are new; its "
        "theory is for graphs that stay.");
  } else {
    output.line("\nDCD-PSGD needs symmetric weights: this graph is not for it.");
  }
  Json result = {{"sotto", SOTTO_VERSION}, {"lazy", request.lazy}, {"seed", request.common.seed}};
  result.update(study::graph_study_json(study, request.round));
  output.json(result);
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
  return completed(*command, request, kTopologyExamples, run);
}

}  // namespace sotto::cli

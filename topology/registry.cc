#include <sotto/topology/registry.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/number.h>

#include "internal/families.h"
#include "internal/graph_cut.h"
#include "internal/graph_file.h"

namespace sotto {
namespace {

using internal::Blueprint;
using internal::GraphRequest;

bool all_undirected(const Blueprint& blueprint) {
  return std::all_of(blueprint.rounds.begin(), blueprint.rounds.end(),
                     [](const auto& arcs) { return internal::is_undirected(arcs); });
}

/// The weights that the family itself gives.
std::vector<std::vector<WeightedEdge>> own_weights(const Blueprint& blueprint, bool lazy) {
  std::vector<std::vector<WeightedEdge>> rounds;
  for (std::size_t round = 0; round < blueprint.rounds.size(); ++round) {
    auto& edges = rounds.emplace_back();
    for (std::size_t k = 0; k < blueprint.rounds[round].size(); ++k) {
      const auto [from, to] = blueprint.rounds[round][k];
      const double weight = blueprint.weights[round][k];
      edges.push_back({from, to, lazy ? weight / 2 : weight});
    }
  }
  return rounds;
}

/// Applies the weighting asked for; otherwise the family's own weights, or Metropolis to undirected
/// graphs and `directed` to others.
std::shared_ptr<const Topology> weighted(const Blueprint& blueprint, Weighting directed,
                                         const TopologyOptions& options) {
  if (!blueprint.weights.empty() && !options.weighting) {
    return std::make_shared<const Topology>(blueprint.name, blueprint.nodes,
                                            own_weights(blueprint, options.lazy));
  }
  const bool undirected = all_undirected(blueprint);
  const Weighting weighting =
      options.weighting.value_or(undirected ? Weighting::metropolis : directed);
  if (weighting == Weighting::metropolis && !undirected) {
    refuse("weighting", "metropolis",
           fmt::format("{} is directed, and these weights are for undirected graphs; take uniform "
                       "(rows sum to 1) or shares (columns do)",
                       blueprint.name));
  }
  std::vector<std::vector<WeightedEdge>> rounds;
  std::vector<std::vector<double>> self;
  for (const auto& arcs : blueprint.rounds) {
    internal::Weights weights = internal::weigh(blueprint.nodes, arcs, weighting, options.lazy);
    rounds.push_back(std::move(weights.edges));
    if (!weights.self.empty()) {
      self.push_back(std::move(weights.self));
    }
  }
  return std::make_shared<const Topology>(blueprint.name, blueprint.nodes, std::move(rounds),
                                          std::move(self));
}

/// `GRAPH.csv`, and what of it is wanted.
struct FileRequest {
  std::string path;
  std::optional<double> threshold = std::nullopt;
  std::optional<int> cut = std::nullopt;
  bool mutual = false;
};

/// Takes the parameters off the end, in any order; paths may have commas too.
FileRequest file_request(const GraphRequest& request) {
  constexpr std::string_view kThreshold = "threshold=";
  constexpr std::string_view kCut = "cut=";
  FileRequest file;
  std::string_view path = request.argument;
  for (std::size_t comma; (comma = path.rfind(',')) != std::string_view::npos;) {
    const std::string_view word = path.substr(comma + 1);
    bool again = false;
    if (word.starts_with(kThreshold)) {
      again = file.threshold.has_value();
      file.threshold = parse_number<double>(word.substr(kThreshold.size()));
      if (!file.threshold || !std::isfinite(*file.threshold)) {
        refuse("topology", request.spec, "a threshold is a number, e.g. threshold=3");
      }
    } else if (word.starts_with(kCut)) {
      again = file.cut.has_value();
      file.cut = parse_number<int>(word.substr(kCut.size()), 1, std::numeric_limits<int>::max());
      if (!file.cut) {
        refuse("topology", request.spec, "a cut is a number of nodes, e.g. cut=64");
      }
    } else if (word == "mutual") {
      again = file.mutual;
      file.mutual = true;
    } else {
      break;
    }
    if (again) {
      refuse("topology", request.spec,
             fmt::format("{} is given twice, the first time as {}", word.substr(0, word.find('=')),
                         word));
    }
    path = path.substr(0, comma);
  }
  file.path = path;
  return file;
}

/// Reads the file, and takes the parts of it that are wanted.
internal::FileGraph read_file(const GraphRequest& request) {
  const FileRequest wanted = file_request(request);
  if (wanted.cut && request.nodes != 0 && request.nodes != *wanted.cut) {
    refuse("nodes", fmt::to_string(request.nodes),
           fmt::format("{} has {} nodes", request.spec, *wanted.cut));
  }
  internal::FileGraph file =
      internal::parse_graph(internal::read_graph_text(wanted.path), wanted.path,
                            wanted.cut ? 0 : request.nodes, wanted.threshold);
  if (wanted.cut) {
    file = internal::strong_part(file, *wanted.cut, wanted.path);
  }
  if (wanted.mutual) {
    internal::keep_mutual(file, wanted.path);
  }
  return file;
}

std::shared_ptr<const Topology> from_file(const GraphRequest& request,
                                          const TopologyOptions& options) {
  if (request.nodes != 0) {
    internal::require_nodes(request);
  }
  internal::FileGraph file = read_file(request);
  const std::string name(request.spec);
  if (file.weights.empty() || options.weighting) {
    return weighted({name, file.nodes, {std::move(file.arcs)}}, Weighting::shares, options);
  }
  internal::Weights weights = internal::file_weights(file, request.argument, options.lazy);
  std::vector<std::vector<double>> self;
  if (!weights.self.empty()) {
    self.push_back(std::move(weights.self));
  }
  return std::make_shared<const Topology>(
      name, file.nodes, std::vector<std::vector<WeightedEdge>>{std::move(weights.edges)},
      std::move(self));
}

/// A family of graphs: its facts, and how a specification becomes a graph.
struct Family {
  TopologyInfo info;
  std::shared_ptr<const Topology> (*build)(const GraphRequest&, const TopologyOptions&);
  bool takes_argument = false;
  bool needs_argument = false;
};

/// The graph of a family that gives edges.
template <Blueprint (*Edges)(const GraphRequest&)>
std::shared_ptr<const Topology> from_edges(const GraphRequest& request,
                                           const TopologyOptions& options) {
  return weighted(Edges(request), Weighting::uniform, options);
}

constexpr std::array kFamilies = {
    Family{.info = {.name = "ring",
                    .synopsis = "ring",
                    .summary = "Every node talks to the two beside it.",
                    .nodes = "any",
                    .example = "ring"},
           .build = from_edges<internal::ring>},
    Family{.info = {.name = "complete",
                    .synopsis = "complete",
                    .summary = "Everyone talks to everyone.",
                    .nodes = "any",
                    .example = "complete"},
           .build = from_edges<internal::complete>},
    Family{.info = {.name = "star",
                    .synopsis = "star",
                    .summary = "Everyone talks to node 0.",
                    .nodes = "any",
                    .example = "star"},
           .build = from_edges<internal::star>},
    Family{.info = {.name = "line",
                    .synopsis = "line",
                    .summary = "A ring with one edge cut; also called path.",
                    .nodes = "any",
                    .example = "line"},
           .build = from_edges<internal::line>},
    Family{.info = {.name = "grid",
                    .synopsis = "grid[:RxC]",
                    .summary =
                        "Up to four neighbours on a grid; without a shape, the most square one.",
                    .nodes = "R × C, or any",
                    .example = "grid:2x4",
                    .argument_fixes_nodes = true},
           .build = from_edges<internal::grid>,
           .takes_argument = true},
    Family{.info = {.name = "torus",
                    .synopsis = "torus[:RxC]",
                    .summary = "A grid whose borders meet; without a shape, the most square one.",
                    .nodes = "R × C, or any",
                    .example = "torus:2x4",
                    .argument_fixes_nodes = true},
           .build = from_edges<internal::torus>,
           .takes_argument = true},
    Family{.info = {.name = "hypercube",
                    .synopsis = "hypercube",
                    .summary = "Neighbours differ in one bit of their rank.",
                    .nodes = "powers of two",
                    .example = "hypercube"},
           .build = from_edges<internal::hypercube>},
    Family{.info = {.name = "exponential",
                    .synopsis = "exponential",
                    .summary =
                        "Node i tells i + 1, i + 2, i + 4, … (Ying et al. 2021, arXiv:2110.13363).",
                    .nodes = "any",
                    .example = "exponential",
                    .directed = true},
           .build = from_edges<internal::exponential>},
    Family{.info = {.name = "one-peer-exponential",
                    .synopsis = "one-peer-exponential",
                    .summary = "Node i tells i + 1, i + 2, i + 4, … in turn, one a round; the "
                               "exact average after "
                               "log2 n rounds when n is a power of two, and never otherwise.",
                    .nodes = "any",
                    .example = "one-peer-exponential",
                    .directed = true,
                    .time_varying = true},
           .build = from_edges<internal::one_peer_exponential>},
    Family{.info =
               {.name = "base",
                .synopsis = "base:K",
                .summary =
                    "At most K peers a round, in turn, and the exact average after one period, for "
                    "any count (base-(K+1) graphs, Takezawa et al. 2023, arXiv:2305.11420).",
                .nodes = "any",
                .example = "base:2",
                .time_varying = true},
           .build = from_edges<internal::base>,
           .takes_argument = true,
           .needs_argument = true},
    Family{.info =
               {.name = "matching",
                .synopsis = "matching[:COUNT[xSTAY]]",
                .summary =
                    "Random pairs that average, COUNT matchings (64) in turn, each for STAY rounds "
                    "(1).",
                .nodes = "any",
                .example = "matching",
                .time_varying = true},
           .build = from_edges<internal::matching>,
           .takes_argument = true},
    Family{.info = {.name = "regular",
                    .synopsis = "regular:K",
                    .summary = "A random connected graph of equal degrees K.",
                    .nodes = "above K, and even for odd K",
                    .example = "regular:3"},
           .build = from_edges<internal::regular>,
           .takes_argument = true,
           .needs_argument = true},
    Family{
        .info =
            {.name = "erdos",
             .synopsis = "erdos:P",
             .summary =
                 "Every pair is an edge with probability P (Erdős–Rényi), drawn until connected.",
             .nodes = "up to 32768",
             .example = "erdos:0.5"},
        .build = from_edges<internal::erdos>,
        .takes_argument = true,
        .needs_argument = true},
    Family{.info = {.name = "edges",
                    .synopsis = "edges:A-B,C-D,…",
                    .summary = "The edges that are listed, each both ways.",
                    .nodes = "the largest rank + 1, or more",
                    .example = "edges:0-1,1-2,2-0",
                    .argument_fixes_nodes = true},
           .build = from_edges<internal::listed_edges>,
           .takes_argument = true,
           .needs_argument = true},
    Family{
        .info =
            {.name = "file",
             .synopsis = "file:GRAPH.csv[,threshold=R][,cut=N][,mutual]",
             .summary =
                 "Edges from a file with the header from,to,weight, from,to or from,to,rating; of "
                 "ratings those from R on, or positive. A strongly connected part of N nodes; only "
                 "edges that run both ways.",
             .nodes = "the file's ranks, or more",
             .example = "file:graph.csv",
             .argument_fixes_nodes = true},
        .build = from_file,
        .takes_argument = true,
        .needs_argument = true},
};

constexpr auto kInfos = [] {
  std::array<TopologyInfo, kFamilies.size()> infos;
  std::ranges::transform(kFamilies, infos.begin(), &Family::info);
  return infos;
}();

/// The entry of a specification's name; null where none is.
const Family* find_family(std::string_view spec) {
  std::string_view name = spec.substr(0, spec.find(':'));
  if (name == "path") {
    name = "line";
  }
  const auto* const found =
      std::ranges::find(kFamilies, name, [](const Family& family) { return family.info.name; });
  return found == kFamilies.end() ? nullptr : found;
}

}  // namespace

std::span<const TopologyInfo> topologies() { return kInfos; }

bool fixes_nodes(std::string_view spec) {
  const Family* family = find_family(spec);
  return family != nullptr && family->info.argument_fixes_nodes &&
         spec.find(':') != std::string_view::npos;
}

std::shared_ptr<const Topology> make_topology(std::string_view spec, int nodes,
                                              const TopologyOptions& options) {
  const Family* family = find_family(spec);
  if (family == nullptr) {
    refuse_unregistered("topology", spec, kInfos);
  }
  GraphRequest request{spec, {}, nodes, options.seed};
  const std::size_t colon = spec.find(':');
  const bool has_colon = colon != std::string_view::npos;
  if (has_colon) {
    request.argument = spec.substr(colon + 1);
  }
  if (has_colon ? !family->takes_argument || request.argument.empty() : family->needs_argument) {
    refuse("topology", spec, fmt::format("it is written {}", family->info.synopsis));
  }
  return family->build(request, options);
}

namespace {

constexpr auto kWeightings =
    std::to_array<std::pair<std::string_view, Weighting>>({{"metropolis", Weighting::metropolis},
                                                           {"uniform", Weighting::uniform},
                                                           {"shares", Weighting::shares}});

}  // namespace

std::vector<std::string> weighting_names() {
  std::vector<std::string> names;
  names.reserve(kWeightings.size());
  for (const auto& [name, weighting] : kWeightings) {
    names.emplace_back(name);
  }
  return names;
}

Weighting parse_weighting(std::string_view name) {
  const auto* const found =
      std::ranges::find(kWeightings, name, &std::pair<std::string_view, Weighting>::first);
  if (found == kWeightings.end()) {
    refuse_unknown("weighting", name, weighting_names());
  }
  return found->second;
}

}  // namespace sotto

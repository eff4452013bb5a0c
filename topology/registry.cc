#include <sotto/topology/registry.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sotto/base/error.h>

#include "internal/families.h"

namespace sotto {
namespace {

using internal::Blueprint;
using internal::GraphRequest;

struct Family {
  Blueprint (*build)(const GraphRequest&);
  bool takes_argument;
};

constexpr std::array kInfos = {
    TopologyInfo{"ring", "ring", "Every node talks to the two beside it.", "any", "ring"},
    TopologyInfo{"complete", "complete", "Everyone talks to everyone.", "any", "complete"},
    TopologyInfo{"star", "star", "Everyone talks to node 0.", "any", "star"},
    TopologyInfo{"line", "line", "A ring with one edge cut; also called path.", "any", "line"},
    TopologyInfo{"grid", "grid[:RxC]",
                 "Up to four neighbours on a grid; without a shape, the most square one.",
                 "R × C, or any", "grid:2x4"},
    TopologyInfo{"torus", "torus[:RxC]",
                 "A grid whose borders meet; without a shape, the most square one.",
                 "R × C, or any", "torus:2x4"},
    TopologyInfo{"hypercube", "hypercube", "Neighbours differ in one bit of their rank.",
                 "powers of two", "hypercube"},
    TopologyInfo{"exponential", "exponential",
                 "Node i tells i + 1, i + 2, i + 4, … (Ying et al. 2021, arXiv:2110.13363).", "any",
                 "exponential", true},
    TopologyInfo{"one-peer-exponential", "one-peer-exponential",
                 "One edge of the exponential graph a round, in turn; the exact average after "
                 "log2 n rounds when n is a power of two.",
                 "any", "one-peer-exponential", true, true},
};

constexpr std::array kFamilies = {
    Family{internal::ring, false},
    Family{internal::complete, false},
    Family{internal::star, false},
    Family{internal::line, false},
    Family{internal::grid, true},
    Family{internal::torus, true},
    Family{internal::hypercube, false},
    Family{internal::exponential, false},
    Family{internal::one_peer_exponential, false},
};
static_assert(kInfos.size() == kFamilies.size());

[[noreturn]] void refuse_unknown(std::string_view spec) {
  std::vector<std::string_view> synopses;
  for (const TopologyInfo& info : kInfos) {
    synopses.push_back(info.synopsis);
  }
  refuse("topology", spec, fmt::format("there are {}", fmt::join(synopses, ", ")));
}

std::shared_ptr<const Topology> weighted(std::string_view spec, const Blueprint& blueprint,
                                         const TopologyOptions& options) {
  const bool undirected =
      std::all_of(blueprint.rounds.begin(), blueprint.rounds.end(),
                  [](const auto& arcs) { return internal::is_undirected(arcs); });
  const Weighting weighting =
      options.weighting.value_or(undirected ? Weighting::metropolis : Weighting::uniform);
  if (weighting == Weighting::metropolis && !undirected) {
    refuse("weighting", "metropolis",
           fmt::format("{} is directed, and these weights are for undirected graphs; take uniform "
                       "(rows sum to 1) or shares (columns do)",
                       spec));
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

}  // namespace

std::span<const TopologyInfo> topologies() { return kInfos; }

std::shared_ptr<const Topology> make_topology(std::string_view spec, int nodes,
                                              const TopologyOptions& options) {
  const std::size_t colon = spec.find(':');
  std::string_view name = spec.substr(0, colon);
  GraphRequest request{spec, {}, nodes, options.seed};
  if (colon != std::string_view::npos) {
    request.argument = spec.substr(colon + 1);
  }
  if (name == "path") {
    name = "line";
  }
  const auto info = std::find_if(kInfos.begin(), kInfos.end(),
                                 [&](const TopologyInfo& entry) { return entry.name == name; });
  if (info == kInfos.end()) {
    refuse_unknown(spec);
  }
  const Family& family = kFamilies[static_cast<std::size_t>(info - kInfos.begin())];
  if (colon != std::string_view::npos && (!family.takes_argument || request.argument.empty())) {
    refuse("topology", spec, fmt::format("it is written {}", info->synopsis));
  }
  return weighted(spec, family.build(request), options);
}

}  // namespace sotto

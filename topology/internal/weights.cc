#include "weights.h"

#include <algorithm>
#include <cmath>

namespace sotto::internal {
namespace {

constexpr int kFloatDigits = 24;

/// Spacing of the float32 values of about this size.
double float_spacing(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, exponent - kFloatDigits);
}

/// The grid that a self-weight of about this size needs; the margin absorbs what rounding adds.
double self_grid(double self) { return self > 0 ? float_spacing(self * (1 + 0x1p-10)) : 0.0; }

double to_grid(double weight, double grid, double (*round)(double)) {
  const double rounded = round(weight / grid) * grid;
  return rounded > 0 ? rounded : static_cast<double>(static_cast<float>(weight));
}

std::vector<double> complements(int nodes, Completion completion,
                                const std::vector<WeightedEdge>& edges) {
  std::vector<double> self(static_cast<std::size_t>(nodes), 1.0);
  for (const WeightedEdge& edge : edges) {
    const Rank owner = completion == Completion::rows ? edge.to : edge.from;
    self[static_cast<std::size_t>(owner)] -= edge.weight;
  }
  return self;
}

bool any_negative(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return value < 0; });
}

}  // namespace

std::vector<double> complete_weights(int nodes, Completion completion,
                                     std::vector<WeightedEdge>& edges) {
  const std::vector<double> intended = complements(nodes, completion, edges);
  const auto round_edges = [&](double (*round)(double)) {
    std::vector<WeightedEdge> rounded = edges;
    for (WeightedEdge& edge : rounded) {
      const double grid = std::max({self_grid(intended[static_cast<std::size_t>(edge.from)]),
                                    self_grid(intended[static_cast<std::size_t>(edge.to)]),
                                    float_spacing(edge.weight)});
      edge.weight = to_grid(edge.weight, grid, round);
    }
    return rounded;
  };
  std::vector<WeightedEdge> rounded = round_edges([](double x) { return std::nearbyint(x); });
  std::vector<double> self = complements(nodes, completion, rounded);
  if (any_negative(self)) {
    // Many weights rounded up may ask for more than there is (a large star's hub): round down.
    rounded = round_edges([](double x) { return std::floor(x); });
    self = complements(nodes, completion, rounded);
  }
  edges = std::move(rounded);
  return self;
}

bool is_undirected(std::vector<Arc> arcs) {
  std::sort(arcs.begin(), arcs.end());
  return std::all_of(arcs.begin(), arcs.end(), [&](const Arc& arc) {
    return std::binary_search(arcs.begin(), arcs.end(), Arc{arc.to, arc.from});
  });
}

Weights weigh(int nodes, const std::vector<Arc>& arcs, Weighting weighting, bool lazy) {
  std::vector<int> in_degree(static_cast<std::size_t>(nodes));
  std::vector<int> out_degree(static_cast<std::size_t>(nodes));
  for (const Arc& arc : arcs) {
    ++in_degree[static_cast<std::size_t>(arc.to)];
    ++out_degree[static_cast<std::size_t>(arc.from)];
  }
  Weights weights;
  weights.edges.reserve(arcs.size());
  for (const Arc& arc : arcs) {
    const int heard = in_degree[static_cast<std::size_t>(arc.to)];
    const int told = out_degree[static_cast<std::size_t>(arc.from)];
    const int degree = weighting == Weighting::metropolis ? std::max(heard, told)
                       : weighting == Weighting::uniform  ? heard
                                                          : told;
    const double weight = 1.0 / (1.0 + degree);
    weights.edges.push_back({arc.from, arc.to, lazy ? weight / 2 : weight});
  }
  if (weighting == Weighting::shares) {
    weights.self = complete_weights(nodes, Completion::columns, weights.edges);
  }
  return weights;
}

}  // namespace sotto::internal

// The table of a training run's figures, each with name, unit and meaning, for every output.
// docs/observability.md lists the same. Pure functions; thread-safe.
#pragma once

#include <span>
#include <string_view>

#include <sotto/trainers/result.h>

namespace sotto {

/// The name and the meaning of a figure. Names end in the unit, _seconds or _bytes; counters end in
/// _total.
struct FigureInfo {
  std::string_view name;
  std::string_view group;  ///< quality, health, network or time
  std::string_view help;
  bool counter() const { return name.ends_with("_total"); }
};

/// A figure of the whole run, at an evaluation; NaN where it has none.
struct RunFigure {
  FigureInfo info;
  double (*value)(const RunEvaluation&);
};
/// All of them, in the order in which they are shown.
std::span<const RunFigure> run_figures();

/// A figure of one node.
struct NodeFigure {
  FigureInfo info;
  double (*value)(const NodeStanding&);
};
/// The figures of each node, as run_figures lists those of the run.
std::span<const NodeFigure> node_figures();

/// A figure of one directed link.
struct LinkFigure {
  FigureInfo info;
  double (*value)(const LinkTraffic&);
};
/// The figures of each link, as run_figures lists those of the run.
std::span<const LinkFigure> link_figures();

/// Σ‖v − C(v)‖² / Σ‖v‖²: what compression leaves out.
double error_ratio(const CompressionSample& sample);
/// Σ‖v − C(v)‖² / what the contract allows, in expectation; 0 where nothing is left out.
double contract_use(const CompressionSample& sample);

}  // namespace sotto

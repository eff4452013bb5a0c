// What a graph promises before anything runs on it: how fast models come together, and which
// compressors DCD-PSGD's theory allows there. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sotto/topology/properties.h>
#include <sotto/topology/spectrum.h>
#include <sotto/topology/topology.h>

namespace sotto::study {

/// A compressor held against the limit of DCD-PSGD's theory on one graph.
struct CompressorFit {
  std::string compressor;  ///< the specification, "quant:8"
  bool unbiased = false;   ///< whether E C(x) = x, which DCD-PSGD needs
  double alpha = 0;        ///< √(E‖C(x) − x‖² / ‖x‖²), measured on Gaussian vectors
  double worst_alpha = 0;  ///< the most that the contract allows; ∞: it has no bound
  bool within_theory = false;  ///< unbiased, with a measured α below the graph's limit
};

/// Why the models of all nodes would not come together on a graph.
enum class GraphObstacle {
  none,           ///< they come together
  not_connected,  ///< what some nodes know never reaches some others
  no_gap,         ///< the spectral gap is 0, as where nodes only swap their models
};

/// A graph, its figures, and compressors held against them.
struct GraphStudy {
  std::shared_ptr<const Topology> topology;  ///< the graph; not null
  GraphProperties properties;                ///< degrees, connectivity and sums of weights
  Spectrum spectrum;                         ///< how fast it mixes
  /// Whether DCD-PSGD's proof covers the graph: it is for symmetric weights that stay. On others
  /// Spectrum::dcd_alpha_limit means nothing, and no compressor is within the theory.
  bool suits_dcd = false;
  GraphObstacle obstacle = GraphObstacle::none;  ///< why training would come to nothing
  std::vector<CompressorFit> compressors;        ///< in the order in which they were named
};

/// Compressors of each kind, from 8 bits an element to one element in a hundred: what study_graph
/// looks at where none are named.
std::vector<std::string> usual_compressors();

/// Studies a graph, which must not be null. α is measured on 4 vectors of 16,384 elements, drawn by
/// `seed`: it is steady in its second digit. Takes as long as spectrum(). Throws Error for a
/// specification that names no compressor, and for a graph whose spectrum would take minutes.
GraphStudy study_graph(std::shared_ptr<const Topology> topology,
                       const std::vector<std::string>& compressors = usual_compressors(),
                       std::uint64_t seed = 0);

}  // namespace sotto::study

#include "graph_study.h"

#include <cstddef>
#include <utility>

#include <sotto/compress/registry.h>

namespace sotto::study {
namespace {

/// Enough for an α that is steady in its second digit.
constexpr std::size_t kMeasuredElements = 16384;
constexpr int kMeasuredSamples = 4;
/// Gaps below are rounding.
constexpr double kNoGap = 1e-9;

GraphObstacle obstacle_of(const GraphStudy& study) {
  if (!study.properties.connected) {
    return GraphObstacle::not_connected;
  }
  const bool stuck = study.properties.doubly_stochastic() && study.topology->nodes() > 1 &&
                     study.spectrum.spectral_gap < kNoGap;
  return stuck ? GraphObstacle::no_gap : GraphObstacle::none;
}

CompressorFit fit_of(const GraphStudy& study, const std::string& spec, std::uint64_t seed) {
  const auto compressor = make_compressor(spec, ContractKind::unbiased);
  const Contract contract = compressor->contract(kMeasuredElements);
  const double alpha = measure_alpha(*compressor, kMeasuredElements, kMeasuredSamples, seed);
  return {.compressor = spec,
          .unbiased = contract.unbiased,
          .alpha = alpha,
          .worst_alpha = contract.alpha,
          .within_theory =
              study.suits_dcd && contract.unbiased && alpha < study.spectrum.dcd_alpha_limit};
}

}  // namespace

std::vector<std::string> usual_compressors() {
  return {"quant:8",   "quant:6",   "quant:4", "quant:2",  "quant:1",
          "randk:0.5", "randk:0.1", "sign",    "topk:0.1", "topk:0.01"};
}

GraphStudy study_graph(std::shared_ptr<const Topology> topology,
                       const std::vector<std::string>& compressors, std::uint64_t seed) {
  GraphStudy study = {.topology = std::move(topology),
                      .properties = {},
                      .spectrum = {},
                      .suits_dcd = false,
                      .obstacle = GraphObstacle::none,
                      .compressors = {}};
  study.properties = properties(*study.topology);
  study.spectrum = spectrum(*study.topology);
  study.suits_dcd = study.properties.symmetric && !study.topology->time_varying();
  study.obstacle = obstacle_of(study);
  for (const std::string& spec : compressors) {
    study.compressors.push_back(fit_of(study, spec, seed));
  }
  return study;
}

}  // namespace sotto::study

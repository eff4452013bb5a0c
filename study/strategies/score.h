// Floating-point operations of a run, and the score that AIPerf makes of them.
//
// Source: Ren et al. 2021, "AIPerf: Automated machine learning as an AI-HPC benchmark", whose
// regulated score is FLOPs a second × |ln(1 − accuracy)|. It rewards operations that are spent: a
// wasteful model scores higher at the same accuracy. Read it beside the time to a target, never in
// its place. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <optional>

#include <sotto/base/parameter_layout.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::study {

/// Floating-point operations of a row's gradient: 2 k n for a row's product with a matrix of k × n,
/// and twice that on the way back. Of experts a row sees one. Embeddings ("wte", "wpe") are looked
/// up, and what attention does among `positions` is counted. None where a tensor is neither matrix
/// nor vector, as in a convolution, whose shape does not say how often it is used.
std::optional<double> flops_of_row(const ParameterLayout& layout, std::size_t positions);

/// What the score of a run with a plan is made of, besides its time and its accuracy.
struct ScoreTerms {
  /// Operations of a node's gradient, in the mean over nodes; none where they cannot be counted.
  std::optional<double> flops_per_round = {};
  std::size_t test_examples = 0;
};

/// The terms of a plan; none of a task without examples, and of tied layers, which are passed
/// through more often than their tensors say.
ScoreTerms score_terms(const TrainPlan& plan);

/// flops_per_s × |ln(error)|, the error being 1 − accuracy and one of `test_examples` at least,
/// since it would be without bound at 0.
double regulated_score(double flops_per_s, double accuracy, std::size_t test_examples);

}  // namespace sotto::study

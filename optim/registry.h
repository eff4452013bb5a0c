// Algorithms by name. Pure functions; thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <sotto/optim/algorithm.h>
#include <sotto/optim/algorithm_info.h>

namespace sotto {

/// The algorithm of a bucket, or of a model that is not cut: with setup.delayed_gradient in a
/// DelayedGradient. For classes that are built around an algorithm; others call make_algorithm.
std::unique_ptr<Algorithm> build_piece(const AlgorithmInfo& info, AlgorithmSetup setup);
/// The algorithm itself or, with setup.buckets above 1, one of each bucket. For classes built
/// around an algorithm; others call make_algorithm.
std::unique_ptr<Algorithm> build_exchanging(const AlgorithmInfo& info, AlgorithmSetup setup);

/// All algorithms, in the order in which they are listed.
std::span<const AlgorithmInfo> algorithms();

/// The entry of a name, or of a specification that begins with one; throws Error listing the names
/// if there is none.
const AlgorithmInfo& algorithm_info(std::string_view spec);

/// An algorithm with values of its hyperparameters.
struct AlgorithmSpec {
  const AlgorithmInfo* info;
  Hyperparameters hyperparameters;

  /// The specification that parse_algorithm takes, in one form for equal values: "ecd:clock=32".
  std::string text() const;
};

/// Reads `NAME[:KEY=VALUE,…]`. Throws Error for a name or a key that is none, and for a value out
/// of bounds.
AlgorithmSpec parse_algorithm(std::string_view spec);

/// Builds a node's algorithm from its specification, `NAME[:KEY=VALUE,…]`. Throws Error when the
/// compressor's contract or a property of the graph is not met (and setup.allow_contract_violation
/// is not set), naming what fails and what would do. Without a compressor in `setup` the
/// algorithm's default is used. `warnings`, when given, receives what is admissible but outside the
/// theory (DCD's α bound). With setup.privacy it is a PrivateGradient around the algorithm.
std::unique_ptr<Algorithm> make_algorithm(std::string_view spec, AlgorithmSetup setup,
                                          std::vector<std::string>* warnings = nullptr);

}  // namespace sotto

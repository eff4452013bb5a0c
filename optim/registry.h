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
/// DelayedGradient. For what is built around an algorithm, as the next one.
std::unique_ptr<Algorithm> build_piece(const AlgorithmInfo& info, AlgorithmSetup setup);
/// The algorithm itself or, with setup.buckets above 1, one of each bucket. For what is built
/// around an algorithm; others call make_algorithm.
std::unique_ptr<Algorithm> build_exchanging(const AlgorithmInfo& info, AlgorithmSetup setup);

/// All algorithms, in the order in which they are listed.
std::span<const AlgorithmInfo> algorithms();

/// The entry called `name`; throws Error listing the names if there is none.
const AlgorithmInfo& algorithm_info(std::string_view name);

/// Builds a node's algorithm. Throws Error when the compressor's contract or a property of the
/// graph is not met (and setup.allow_contract_violation is not set), naming what fails and what
/// would do. Without a compressor in `setup` the algorithm's default is used. `warnings`, when
/// given, receives what is admissible but outside the theory (DCD's α bound). With setup.privacy
/// it is a PrivateGradient around the algorithm.
std::unique_ptr<Algorithm> make_algorithm(std::string_view name, AlgorithmSetup setup,
                                          std::vector<std::string>* warnings = nullptr);

}  // namespace sotto

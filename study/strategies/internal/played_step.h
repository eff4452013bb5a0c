// A step of nodes on a scenario's network, played in the simulator without gradients. Pure
// functions; thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <sotto/sim/gradient_function.h>
#include <sotto/sim/simulation_report.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/strategies/strategy.h>

namespace sotto::study {

/// What a link had to carry in a step.
struct CarriedLink {
  std::string name;
  double bytes = 0;                 ///< a step
  double bytes_per_s = kUnlimited;  ///< the link's bandwidth
  double seconds() const { return bytes / bytes_per_s; }
};

/// What a step came to, in the mean over several.
struct PlayedStep {
  double seconds = 0;
  std::vector<double> sent;        ///< bytes that each node sends a step, by rank
  std::vector<CarriedLink> links;  ///< by their number in the platform of the job
  int phases = 0;                  ///< exchanges of a program, one behind the other

  /// This step with `times` × another behind it.
  PlayedStep followed_by(const PlayedStep& more, double times) const;
};

/// Whether nodes take a gradient in front of what they exchange.
enum class Computing { none, gradients };

/// The steps of an algorithm of the registry that mixes so many floats. Throws Error for one that
/// is refused, a job that is too large to be played, and a step that ends early.
PlayedStep play(const Scenario& scenario, const MixedPart& part, Computing computing);

/// The steps of a program with so many blocks. Throws Error as the other.
PlayedStep play(const Scenario& scenario, const ProgramPart& part, std::size_t blocks);

}  // namespace sotto::study

// Simulations of timing only. Where an algorithm's exchanges are simple enough, light stand-ins
// take its place: they send frames of the right size to the right peers at the right moments, and
// hold no model; a node costs a few hundred bytes. Where they are not, the algorithm itself runs on
// gradients that cost nothing to take: a node costs its state and its encoding.
//
// Thread safety and ownership as of Algorithm; stand-ins of one job share a scratch buffer, which
// they own together. Their frames carry no bytes of meaning: give the simulator no gradient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <sotto/optim/algorithm.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/sim/gradient_function.h>
#include <sotto/topology/topology.h>

namespace sotto {

/// The properties of an algorithm that decide how long its rounds take.
struct StandInShape {
  /// The time of posting, and the work behind which an exchange hides.
  enum class Timing {
    before_gradient,  ///< posts at the start of a round, and hides behind the gradient (D-PSGD)
    after_gradient,   ///< posts its gradient's step, and hides behind the next one (DCD, ECD)
    blocking,         ///< posts after the gradient; the next needs what comes (all-reduce)
  };
  Timing timing = Timing::before_gradient;
  ExchangePattern pattern = ExchangePattern::neighbours;
  std::size_t frame_bytes = 0;  ///< length of every frame, header included
  std::uint64_t elements = 0;   ///< elements that a frame encodes
  /// A bucket on the ring.
  struct Ring {
    std::size_t frame_bytes = 0;  ///< length of the longest chunks' frames
    std::uint64_t elements = 0;   ///< elements that these frames encode
    /// First chunk with an element less, where n does not divide the bucket (chunks.h).
    int short_from = 0;                 ///< 0: none
    std::size_t short_frame_bytes = 0;  ///< length of the frames from short_from on
  };
  std::vector<Ring> rings = {};  ///< the buckets of a ring, at least one
  std::uint64_t seed = 0;        ///< seed of the pairings
};

/// The shape of a freshly made algorithm of a job on `topology`, found by driving it to its first
/// exchange; discard it afterwards. Empty for one that no stand-in plays exactly: that exchanges
/// more than once a round, or frames of several sizes, or with others than all its neighbours; and
/// for a node that sends to no peer in its first round, and so shows no frame. The frames of a
/// model's buckets go as one but on the ring: bytes are the same, and times but for what codecs
/// overlap with the wire. An algorithm with local steps must not be given: it looks like the one
/// within. `seed` is the job's.
std::optional<StandInShape> stand_in_shape(Algorithm& algorithm, const Topology& topology,
                                           std::uint64_t seed = 0);

/// A job of topology.nodes() stand-ins, in rank order.
std::vector<std::unique_ptr<Algorithm>> make_stand_ins(const StandInShape& shape,
                                                       std::shared_ptr<const Topology> topology);

/// A job for timing only. Give the simulator all of it, and keep `parameters` until it is over.
struct TimingJob {
  std::vector<std::unique_ptr<Algorithm>> nodes;
  /// Empty for stand-ins, else a multiple of the model and noise, of order 1.
  GradientFunction gradient;
  std::vector<std::vector<float>> parameters;
  bool stand_ins() const { return !gradient; }
};

/// Makes node `rank`, on parameters that it is given.
using NodeFactory = std::function<std::unique_ptr<Algorithm>(Rank rank, std::span<float> x)>;

/// How a job of timing only is made.
struct TimingJobOptions {
  bool light = true;       ///< stand-ins where they are exact
  std::uint64_t seed = 0;  ///< the job's, as in AlgorithmSetup
  int nodes = 0;           ///< 0: those of the topology, else no stand-ins may be asked for
};

/// The job of topology.nodes() nodes that start from `start`: stand-ins if `light` and if they are
/// exact, else the algorithms. Frames are as long as the algorithms make them; where a compressor's
/// length depends on the data, those of noise are representative.
TimingJob make_timing_job(const NodeFactory& make, std::shared_ptr<const Topology> topology,
                          std::span<const float> start, const TimingJobOptions& options = {});

}  // namespace sotto

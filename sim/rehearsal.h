// Stand-ins for algorithms, for simulations of timing only: they send frames of the right size to
// the right peers at the right moments, and hold no model. A node costs a few hundred bytes.
//
// Thread safety and ownership as of Algorithm; stand-ins of one job share a scratch buffer, which
// they own together. Their frames carry no bytes of meaning: give the simulator no gradient.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <sotto/optim/algorithm.h>
#include <sotto/topology/topology.h>

namespace sotto {

/// What of an algorithm decides the time that it takes.
struct RehearsalShape {
  enum class Timing {
    before_gradient,  ///< posts at the start of a round, and hides behind the gradient (D-PSGD)
    after_gradient,   ///< posts its gradient's step, and hides behind the next one (DCD, ECD)
    blocking,         ///< posts after the gradient; the next needs what comes (all-reduce)
  };
  enum class Pattern {
    neighbours,  ///< one exchange with the graph's neighbours
    ring,        ///< 2 (n − 1) exchanges, each to the next rank and from the one before
  };
  Timing timing = Timing::before_gradient;
  Pattern pattern = Pattern::neighbours;
  std::size_t frame_bytes = 0;  ///< of every frame, header included
};

/// The shape of a freshly made algorithm, found by driving it to its first exchange; discard it
/// afterwards. Holds for algorithms that exchange once a round with their graph's neighbours, or as
/// all-reduce does, with frames of one size. Throws Error for one that exchanges nothing in its
/// first round.
RehearsalShape rehearsal_shape(Algorithm& algorithm);

/// A job of topology.nodes() stand-ins, in rank order.
std::vector<std::unique_ptr<Algorithm>> make_rehearsals(const RehearsalShape& shape,
                                                        std::shared_ptr<const Topology> topology);

}  // namespace sotto

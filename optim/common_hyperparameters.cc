#include <sotto/optim/common_hyperparameters.h>

#include <algorithm>
#include <cmath>

#include <sotto/compress/registry.h>

namespace sotto {

double default_consensus_stepsize(const Compressor& compressor, std::size_t dimension, double cap) {
  const double alpha = dimension == 0 ? 0 : typical_alpha(compressor, dimension);
  return alpha > 0 ? std::min(cap, std::pow(alpha, -2.0 / 3.0) - 1) : cap;
}

}  // namespace sotto

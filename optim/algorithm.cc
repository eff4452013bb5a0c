#include <sotto/optim/algorithm.h>

namespace sotto {

Status Algorithm::step_ahead(const Direction& /*d*/, std::span<float> /*stepped*/,
                             Exchange& /*out*/, bool* /*post*/) {
  return {Fault::unexpected, "this algorithm does not step before it mixes"};
}

Status Algorithm::gradient_part(std::size_t /*first*/, std::span<const float> /*part*/) {
  return {Fault::unexpected, "this algorithm takes gradients whole"};
}

}  // namespace sotto

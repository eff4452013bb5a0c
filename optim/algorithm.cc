#include <sotto/optim/algorithm.h>

namespace sotto {

Status Algorithm::take_direction(const Direction& /*d*/) {
  return {Fault::unexpected, "this algorithm does not take directions"};
}

Status Algorithm::step_ahead(const Direction& /*d*/, std::span<float> /*stepped*/) {
  return {Fault::unexpected, "this algorithm does not step before it mixes"};
}

Status Algorithm::gradient_part(std::size_t /*first*/, std::span<const float> /*part*/) {
  return {Fault::unexpected, "this algorithm takes gradients whole"};
}

}  // namespace sotto

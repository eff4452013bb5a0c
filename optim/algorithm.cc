#include <sotto/optim/algorithm.h>

namespace sotto {

Status Algorithm::gradient_part(std::size_t /*first*/, std::span<const float> /*part*/) {
  return {Fault::unexpected, "this algorithm takes gradients whole"};
}

}  // namespace sotto

// Products of matrices when sotto is built without Highway.
#include "../host/packed_product.h"

namespace sotto {

void compute(const PackedProduct& product) {
  const auto& [rows, inner, columns] = product.shape;
  const std::size_t down = product.transposed ? 1 : columns;
  const std::size_t across = product.transposed ? inner : 1;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = product.upper ? i : 0; j < columns; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < inner; ++k) {
        sum += product.a[i * inner + k] * product.b[k * down + j * across];
      }
      product.out[i * columns + j] = sum;
    }
  }
}

}  // namespace sotto

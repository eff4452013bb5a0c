// Cosine transforms when sotto is built without Highway.
#include "../host/transform_columns.h"

#include "../reference/plain_dct.h"

namespace sotto {

void transform_columns(const DctFactors& factors, bool inverse, std::size_t columns, float* x) {
  plain_transform(factors, inverse, columns, x);
}

}  // namespace sotto

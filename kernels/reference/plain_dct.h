// The definition of the cosine transforms (../dct.h), a column at a time. Private to the kernels. A
// pure function on views; thread-safe.
#pragma once

#include <cstddef>

#include "../dct.h"

namespace sotto {

/// Transforms each column of x, a matrix of factors.length rows: forward, or inverse.
void plain_transform(const DctFactors& factors, bool inverse, std::size_t columns, float* x);

}  // namespace sotto

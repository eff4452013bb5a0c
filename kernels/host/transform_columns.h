// What Dct asks of an instruction set. Private to the kernels. A pure function on views;
// thread-safe.
#pragma once

#include <cstddef>

#include "../dct.h"

namespace sotto {

/// Transforms each column of x, a matrix of factors.length rows, with the best instruction set that
/// there is: forward, or inverse.
void transform_columns(const DctFactors& factors, bool inverse, std::size_t columns, float* x);

}  // namespace sotto

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sotto/kernels/host/packed_product.cc"
#include <hwy/foreach_target.h>

#include "packed_product.h"
#include "vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {

// A tile of sums that stay in registers: of sixteen, twelve are sums, and two hold what the rows
// share.
constexpr size_t kTileRows = 6;
constexpr size_t kTileColumns = 2 * kLanes;
static_assert(kPackedWidth % kTileColumns == 0, "packed columns are whole panels");

/// A tile's place: `depth` elements of each row of the left factor, a panel of as many rows of the
/// right one, and the sums, which begin at 0 with the first panel.
struct Tile {
  const float* a;
  size_t a_stride;
  size_t depth;
  const float* panel;
  float* out;
  size_t out_stride;
  bool first;
};

template <size_t kRows>
HWY_INLINE void add_tile(const Tile& t) {
  const F32 d;
  VecF left[kRows];
  VecF right[kRows];
  for (size_t row = 0; row < kRows; ++row) {
    const float* sums = t.out + row * t.out_stride;
    left[row] = t.first ? hn::Zero(d) : hn::LoadU(d, sums);
    right[row] = t.first ? hn::Zero(d) : hn::LoadU(d, sums + kLanes);
  }
  for (size_t k = 0; k < t.depth; ++k) {
    const VecF b_left = hn::LoadU(d, t.panel + k * kTileColumns);
    const VecF b_right = hn::LoadU(d, t.panel + k * kTileColumns + kLanes);
    for (size_t row = 0; row < kRows; ++row) {
      const VecF a = hn::Set(d, t.a[row * t.a_stride + k]);
      left[row] = hn::Add(left[row], hn::Mul(a, b_left));
      right[row] = hn::Add(right[row], hn::Mul(a, b_right));
    }
  }
  for (size_t row = 0; row < kRows; ++row) {
    hn::StoreU(left[row], d, t.out + row * t.out_stride);
    hn::StoreU(right[row], d, t.out + row * t.out_stride + kLanes);
  }
}

HWY_INLINE void add_rows(const Tile& t, size_t rows) {
  switch (rows) {
    case 6:
      return add_tile<6>(t);
    case 5:
      return add_tile<5>(t);
    case 4:
      return add_tile<4>(t);
    case 3:
      return add_tile<3>(t);
    case 2:
      return add_tile<2>(t);
    default:
      return add_tile<1>(t);
  }
}

/// The tile whose panel has fewer columns: it works on a copy of the sums.
HWY_INLINE void add_narrow(const Tile& t, size_t rows, size_t columns) {
  HWY_ALIGN float sums[kTileRows * kTileColumns] = {};
  for (size_t row = 0; row < rows; ++row) {
    memcpy(sums + row * kTileColumns, t.out + row * t.out_stride, columns * sizeof(float));
  }
  Tile copy = t;
  copy.out = sums;
  copy.out_stride = kTileColumns;
  add_rows(copy, rows);
  for (size_t row = 0; row < rows; ++row) {
    memcpy(t.out + row * t.out_stride, sums + row * kTileColumns, columns * sizeof(float));
  }
}

/// Copies `depth` rows of `width` columns of b, from (k0, j0) on, into panels; columns that a panel
/// lacks are zeros.
void pack(const PackedProduct& p, size_t k0, size_t depth, size_t j0, size_t width) {
  for (size_t j = 0; j < width; j += kTileColumns) {
    float* panel = p.packed + j * depth;
    const size_t columns = HWY_MIN(kTileColumns, width - j);
    if (columns < kTileColumns) {
      memset(panel, 0, depth * kTileColumns * sizeof(float));
    }
    if (p.transposed) {
      for (size_t column = 0; column < columns; ++column) {
        const float* from = p.b + (j0 + j + column) * p.shape.inner + k0;
        for (size_t k = 0; k < depth; ++k) {
          panel[k * kTileColumns + column] = from[k];
        }
      }
    } else {
      for (size_t k = 0; k < depth; ++k) {
        memcpy(panel + k * kTileColumns, p.b + (k0 + k) * p.shape.columns + j0 + j,
               columns * sizeof(float));
      }
    }
  }
}

void add_block(const PackedProduct& p, size_t k0, size_t depth, size_t j0, size_t width) {
  for (size_t j = 0; j < width; j += kTileColumns) {
    const size_t columns = HWY_MIN(kTileColumns, width - j);
    // Rows below the last column of the panel lie below the diagonal.
    const size_t rows = p.upper ? HWY_MIN(p.shape.rows, j0 + j + columns) : p.shape.rows;
    for (size_t i = 0; i < rows; i += kTileRows) {
      const Tile tile = {.a = p.a + i * p.shape.inner + k0,
                         .a_stride = p.shape.inner,
                         .depth = depth,
                         .panel = p.packed + j * depth,
                         .out = p.out + i * p.shape.columns + j0 + j,
                         .out_stride = p.shape.columns,
                         .first = k0 == 0};
      const size_t together = HWY_MIN(kTileRows, p.shape.rows - i);
      if (columns == kTileColumns) {
        add_rows(tile, together);
      } else {
        add_narrow(tile, together, columns);
      }
    }
  }
}

void packed_product(const PackedProduct& p) {
  if (p.shape.inner == 0) {
    for (size_t i = 0; i < p.shape.rows * p.shape.columns; ++i) {
      p.out[i] = 0;
    }
    return;
  }
  for (size_t j0 = 0; j0 < p.shape.columns; j0 += kPackedWidth) {
    const size_t width = HWY_MIN(kPackedWidth, p.shape.columns - j0);
    for (size_t k0 = 0; k0 < p.shape.inner; k0 += kPackedDepth) {
      const size_t depth = HWY_MIN(kPackedDepth, p.shape.inner - k0);
      pack(p, k0, depth, j0, width);
      add_block(p, k0, depth, j0, width);
    }
  }
}

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sotto {

HWY_EXPORT(packed_product);

void compute(const PackedProduct& product) { HWY_DYNAMIC_DISPATCH(packed_product)(product); }

}  // namespace sotto
#endif  // HWY_ONCE

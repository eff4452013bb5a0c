// Sums and extremes in the fixed shape of kReduceLanes (kernels/ops.h), for host and device.
//
// A reducer has State, what a lane holds, begin(), take(state, i) for element i, merge(a, b); and
// Total, what blocks add up to, with total(), add(total, state) and finish(total). With kAnyOrder
// State and Total are one, and the order of what is added does not show.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sotto/kernels/cuda/block.h>
#include <sotto/kernels/cuda/bytes.h>
#include <sotto/kernels/cuda/element.h>

namespace sotto::cuda {

/// Elements of one lane in a whole reduction block.
inline constexpr std::size_t kLaneElements = kReduceBlock / kReduceLanes;

/// Adds term(x, y, i) of each element. A functor, for it is part of a kernel's name.
template <typename Term>
struct Sum {
  using State = float;
  using Total = double;
  using Result = double;
  static constexpr bool kAnyOrder = false;
  const float* x = nullptr;
  const float* y = nullptr;

  SOTTO_HOST_DEVICE float begin() const { return 0.0F; }
  SOTTO_HOST_DEVICE void take(float& sum, std::size_t i) const { sum = sum + Term::of(x, y, i); }
  SOTTO_HOST_DEVICE float merge(float a, float b) const { return a + b; }
  SOTTO_HOST_DEVICE double total() const { return 0.0; }
  SOTTO_HOST_DEVICE void add(double& total, float sum) const {
    total = total + static_cast<double>(sum);
  }
  SOTTO_HOST_DEVICE double finish(double total) const { return total; }
};

struct Plain {
  SOTTO_HOST_DEVICE static float of(const float* x, const float* /*y*/, std::size_t i) {
    return x[i];
  }
};
struct Magnitude {
  SOTTO_HOST_DEVICE static float of(const float* x, const float* /*y*/, std::size_t i) {
    return float_of(magnitude_of(x[i]));
  }
};
struct Square {
  SOTTO_HOST_DEVICE static float of(const float* x, const float* /*y*/, std::size_t i) {
    return x[i] * x[i];
  }
};
struct Product {
  SOTTO_HOST_DEVICE static float of(const float* x, const float* y, std::size_t i) {
    return x[i] * y[i];
  }
};

struct Extremes {
  using State = MinMax;
  using Total = MinMax;
  using Result = MinMax;
  static constexpr bool kAnyOrder = true;
  const float* x = nullptr;

  /// The extremes of no elements: each is beyond the other.
  SOTTO_HOST_DEVICE MinMax begin() const {
    return {float_of(kInfinityBits), -float_of(kInfinityBits)};
  }
  SOTTO_HOST_DEVICE void take(MinMax& range, std::size_t i) const {
    range = merge(range, {x[i], x[i]});
  }
  SOTTO_HOST_DEVICE MinMax merge(MinMax a, MinMax b) const {
    return {b.min < a.min ? b.min : a.min, b.max > a.max ? b.max : a.max};
  }
  SOTTO_HOST_DEVICE MinMax total() const { return begin(); }
  SOTTO_HOST_DEVICE void add(MinMax& total, MinMax range) const { total = merge(total, range); }
  /// −0 becomes +0, and no elements {0, 0}.
  SOTTO_HOST_DEVICE MinMax finish(MinMax total) const {
    return total.min > total.max ? MinMax{} : MinMax{total.min + 0.0F, total.max + 0.0F};
  }
};

/// Which codes of a coder at any address stand for no finite value.
template <typename Coder>
struct NotFinite {
  using State = NonFinite;
  using Total = NonFinite;
  using Result = NonFinite;
  static constexpr bool kAnyOrder = true;
  const std::byte* codes = nullptr;

  SOTTO_HOST_DEVICE NonFinite begin() const { return {}; }
  SOTTO_HOST_DEVICE void take(NonFinite& found, std::size_t i) const {
    std::uint32_t code = 0;
    if constexpr (Coder::kBytes == 2) {
      code = load_u16(codes + 2 * i);
    } else if (phase_of(codes) % sizeof(float) == 0) {
      code = bits_of(reinterpret_cast<const float*>(codes)[i]);
    } else {
      code = load_u32(codes + 4 * i);
    }
    if (!Coder{}.finite(code)) {
      found = merge(found, {1, i});
    }
  }
  SOTTO_HOST_DEVICE NonFinite merge(NonFinite a, NonFinite b) const {
    const bool from_b = a.count == 0 || (b.count > 0 && b.first < a.first);
    return {a.count + b.count, from_b ? b.first : a.first};
  }
  SOTTO_HOST_DEVICE NonFinite total() const { return {}; }
  SOTTO_HOST_DEVICE void add(NonFinite& total, NonFinite found) const {
    total = merge(total, found);
  }
  SOTTO_HOST_DEVICE NonFinite finish(NonFinite total) const { return total; }
};

/// Lane `lane` of the elements begin … begin + count − 1, at most a reduction block.
template <typename Reducer>
SOTTO_HOST_DEVICE typename Reducer::State lane_state(const Reducer& reducer, std::size_t begin,
                                                     std::size_t count, std::uint32_t lane) {
  typename Reducer::State state = reducer.begin();
  if (count == kReduceBlock) {
    SOTTO_UNROLL_16
    for (std::size_t k = 0; k < kLaneElements; ++k) {
      reducer.take(state, begin + lane + k * kReduceLanes);
    }
    return state;
  }
  for (std::size_t i = lane; i < count; i += kReduceLanes) {
    reducer.take(state, begin + i);
  }
  return state;
}

/// all[lane] ← all[lane] and all[lane + kHalf] for the first kHalf, and so on down to 1. All places
/// are known to the compiler, so that what is in registers stays there.
template <std::uint32_t kHalf, typename Reducer>
SOTTO_HOST_DEVICE void fold_halves(const Reducer& reducer, typename Reducer::State* all) {
  SOTTO_UNROLL
  for (std::uint32_t lane = 0; lane < kHalf; ++lane) {
    all[lane] = reducer.merge(all[lane], all[lane + kHalf]);
  }
  if constexpr (kHalf > 1) {
    fold_halves<kHalf / 2>(reducer, all);
  }
}

/// The kReduceLanes states at `lanes`, added pairwise.
template <typename Reducer>
SOTTO_HOST_DEVICE typename Reducer::State fold_lanes(const Reducer& reducer,
                                                     typename Reducer::State* lanes) {
  if constexpr (sizeof(typename Reducer::State) == sizeof(float)) {
    // In registers: additions that wait for memory would take longer than all before them.
    typename Reducer::State all[kReduceLanes];
    SOTTO_UNROLL
    for (std::uint32_t lane = 0; lane < kReduceLanes; ++lane) {
      all[lane] = lanes[lane];
    }
    fold_halves<kReduceLanes / 2>(reducer, all);
    return all[0];
  } else {
    fold_halves<kReduceLanes / 2>(reducer, lanes);
    return lanes[0];
  }
}

/// The reduction blocks that block number `index` takes, one a warp: their states go to `parts`,
/// which holds one for each of the `count` elements' reduction blocks. `lanes` is the block's own,
/// a state for each thread.
template <typename Block, typename Reducer>
SOTTO_HOST_DEVICE void reduce_part(const Block& block, const Reducer& reducer, std::size_t count,
                                   std::size_t index, typename Reducer::State* lanes,
                                   typename Reducer::State* parts) {
  const std::size_t first = index * (block.threads() / kWarp);
  block.each([&](std::uint32_t thread) {
    const std::size_t begin = (first + thread / kWarp) * kReduceBlock;
    if (begin < count) {
      const std::size_t rest = count - begin;
      lanes[thread] =
          lane_state(reducer, begin, rest < kReduceBlock ? rest : kReduceBlock, thread % kWarp);
    }
  });
  block.each([&](std::uint32_t thread) {
    const std::size_t part = first + thread;
    if (thread < block.threads() / kWarp && part * kReduceBlock < count) {
      parts[part] = fold_lanes(reducer, lanes + thread * kWarp);
    }
  });
}

/// What the parts add up to, in order.
template <typename Reducer>
SOTTO_HOST_DEVICE typename Reducer::Total total_of(const Reducer& reducer,
                                                   const typename Reducer::State* parts,
                                                   std::size_t count) {
  typename Reducer::Total total = reducer.total();
  SOTTO_UNROLL_16
  for (std::size_t k = 0; k < count; ++k) {
    reducer.add(total, parts[k]);
  }
  return total;
}

/// What one block makes of the parts. `room` is its own, a total for each thread.
template <typename Block, typename Reducer>
SOTTO_HOST_DEVICE void finish_parts(const Block& block, const Reducer& reducer,
                                    const typename Reducer::State* parts, std::size_t count,
                                    typename Reducer::Total* room,
                                    typename Reducer::Result* result) {
  if constexpr (Reducer::kAnyOrder) {
    block.each([&](std::uint32_t thread) {
      room[thread] = reducer.total();
      for (std::size_t k = thread; k < count; k += block.threads()) {
        reducer.add(room[thread], parts[k]);
      }
    });
    parts = room;
    count = block.threads();
  }
  block.each([&](std::uint32_t thread) {
    if (thread == 0) {
      *result = reducer.finish(total_of(reducer, parts, count));
    }
  });
}

}  // namespace sotto::cuda

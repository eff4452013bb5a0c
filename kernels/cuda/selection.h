// The k largest magnitudes: found digit by digit, then gathered in order. For host and device.
//
// A magnitude has 31 bits, looked at from the top in three digits. Of each digit all elements that
// agree with what is known are counted by value, and the digit is the largest that k of them reach.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sotto/kernels/cuda/block.h>
#include <sotto/kernels/cuda/codes.h>
#include <sotto/kernels/cuda/element.h>
#include <sotto/kernels/ops.h>

namespace sotto::cuda {

inline constexpr std::uint32_t kDigitBits = 11;
inline constexpr std::uint32_t kDigits = 1U << kDigitBits;

/// One of the three digits.
struct Digit {
  std::uint32_t shift = 0;
  std::uint32_t bits = kDigitBits;
};
inline constexpr Digit kMagnitudeDigits[] = {{20, 11}, {9, 11}, {0, 9}};

/// What is known of the threshold, and how many of those that agree with it are still wanted.
struct Search {
  std::uint32_t prefix = 0;
  std::uint32_t wanted = 0;
  std::uint32_t bins[kDigits] = {};
};

/// Counts the digits of the elements that agree with the prefix, all those of thread `thread` of
/// `threads` among `count`.
SOTTO_HOST_DEVICE void count_digits(const float* x, std::size_t count, Digit digit,
                                    std::uint32_t prefix, std::uint32_t* bins, std::size_t thread,
                                    std::size_t threads) {
  for (std::size_t i = thread; i < count; i += threads) {
    const std::uint32_t magnitude = magnitude_of(x[i]);
    if (magnitude >> digit.shift >> digit.bits == prefix) {
      add_to(&bins[(magnitude >> digit.shift) & ((1U << digit.bits) - 1U)], 1U);
    }
  }
}

/// Chooses the digit and clears the bins. `sums` holds kWarp numbers; the block has kWarp threads
/// or more.
template <typename Block>
SOTTO_HOST_DEVICE void choose_digit(const Block& block, Digit digit, Search& search,
                                    std::uint32_t* sums) {
  const std::uint32_t share = (1U << digit.bits) / kWarp;
  block.each([&](std::uint32_t thread) {
    if (thread < kWarp) {
      std::uint32_t sum = 0;
      for (std::uint32_t k = 0; k < share; ++k) {
        sum += search.bins[thread * share + k];
      }
      sums[thread] = sum;
    }
  });
  block.each([&](std::uint32_t thread) {
    if (thread != 0) {
      return;
    }
    std::uint32_t part = kWarp - 1;
    for (; part > 0 && sums[part] < search.wanted; --part) {
      search.wanted -= sums[part];
    }
    std::uint32_t bin = part * share + share - 1;
    for (; bin > part * share && search.bins[bin] < search.wanted; --bin) {
      search.wanted -= search.bins[bin];
    }
    search.prefix = search.prefix << digit.bits | bin;
  });
  block.each([&](std::uint32_t thread) {
    for (std::uint32_t k = thread; k < kDigits; k += block.threads()) {
      search.bins[k] = 0;
    }
  });
}

/// Elements above the threshold, and equal to it, before some place. Without initializers, which
/// shared memory cannot have.
struct Ranks {
  std::uint32_t above;
  std::uint32_t equal;
};

SOTTO_HOST_DEVICE Ranks operator+(Ranks a, Ranks b) {
  return {a.above + b.above, a.equal + b.equal};
}

/// What gathering works with: each thread has elements of its own, one behind the other.
inline constexpr std::uint32_t kOwn = kTile / kMostThreads;

/// The ranks of the elements of one thread among those of a tile in `values`.
SOTTO_HOST_DEVICE Ranks own_ranks(const float* values, std::uint32_t count, std::uint32_t threshold,
                                  std::uint32_t thread) {
  Ranks found{};
  for (std::uint32_t k = 0; k < kOwn; ++k) {
    const std::uint32_t i = thread * kOwn + k;
    if (i < count) {
      const std::uint32_t magnitude = magnitude_of(values[i]);
      found.above += magnitude > threshold ? 1 : 0;
      found.equal += magnitude == threshold ? 1 : 0;
    }
  }
  return found;
}

/// Replaces the `count` ranks by the sums of those before; the whole goes to *total, if not null.
/// `sums` holds kWarp of them; the block has kWarp threads or more.
template <typename Block>
SOTTO_HOST_DEVICE void add_up(const Block& block, Ranks* ranks, std::uint32_t count, Ranks* sums,
                              Ranks* total) {
  const std::uint32_t share = (count + kWarp - 1) / kWarp;
  block.each([&](std::uint32_t thread) {
    if (thread < kWarp) {
      Ranks sum{};
      for (std::uint32_t k = thread * share; k < count && k < (thread + 1) * share; ++k) {
        sum = sum + ranks[k];
      }
      sums[thread] = sum;
    }
  });
  block.each([&](std::uint32_t thread) {
    if (thread < kWarp) {
      Ranks before{};
      for (std::uint32_t k = 0; k < thread; ++k) {
        before = before + sums[k];
      }
      for (std::uint32_t k = thread * share; k < count && k < (thread + 1) * share; ++k) {
        const Ranks here = ranks[k];
        ranks[k] = before;
        before = before + here;
      }
      if (thread == kWarp - 1 && total != nullptr) {
        *total = before;
      }
    }
  });
}

/// Where selected elements go.
struct Selected {
  std::uint32_t* indices = nullptr;
  float* values = nullptr;
  std::size_t room = 0;
};

/// Writes one thread's elements of the tile that begins at element `first`; `before` is how many
/// came earlier in the vector.
SOTTO_HOST_DEVICE void write_own(const float* values, std::uint32_t count, std::size_t first,
                                 const TopK& top, Ranks before, const Selected& to,
                                 std::uint32_t thread) {
  for (std::uint32_t k = 0; k < kOwn; ++k) {
    const std::uint32_t i = thread * kOwn + k;
    if (i >= count) {
      return;
    }
    const std::uint32_t magnitude = magnitude_of(values[i]);
    const bool above = magnitude > top.threshold;
    const bool tied = magnitude == top.threshold && before.equal < top.ties;
    const std::size_t taken = before.equal < top.ties ? before.equal : top.ties;
    const std::size_t place = before.above + taken;
    if ((above || tied) && place < to.room) {
      to.indices[place] = static_cast<std::uint32_t>(first + i);
      to.values[place] = values[i];
    }
    before.above += above ? 1 : 0;
    before.equal += magnitude == top.threshold ? 1 : 0;
  }
}

/// The threshold and the ties: read where something earlier wrote them, or given, without ties.
struct Bound {
  const TopK* top = nullptr;
  std::uint32_t threshold = 0;

  SOTTO_HOST_DEVICE TopK read() const {
    TopK bound;
    bound.threshold = top == nullptr ? threshold : top->threshold;
    bound.ties = top == nullptr ? 0 : top->ties;
    return bound;
  }
};

/// What a block of kMostThreads works in.
struct GatherRoom {
  std::byte* values = nullptr;  ///< kGatherBytes
  Ranks* ranks = nullptr;       ///< one a thread
  Ranks* sums = nullptr;        ///< kWarp
};
inline constexpr std::uint32_t kGatherBytes = kTile * sizeof(float) + kVector;

/// The ranks of tile `index`: those of each thread in room.ranks, of the whole in *total, if not
/// null. Returns where the tile's values are.
template <typename Block>
SOTTO_HOST_DEVICE const float* rank_part(const Block& block, const float* x, std::size_t length,
                                         const Bound& bound, const GatherRoom& room,
                                         std::size_t index, Ranks* total) {
  const float* from = x + index * kTile;
  const std::uint32_t count = tile_count(length, index);
  const std::uint32_t threshold = bound.read().threshold;
  auto* values = reinterpret_cast<float*>(room.values + phase_of(from));
  block.each([&](std::uint32_t thread) {
    load_values(from, nullptr, count, values, thread, block.threads(), [](std::uint32_t, float) {});
  });
  block.each([&](std::uint32_t thread) {
    room.ranks[thread] = own_ranks(values, count, threshold, thread);
  });
  add_up(block, room.ranks, kMostThreads, room.sums, total);
  return values;
}

/// Writes what is selected of tile `index`, `before` which there is more in the tiles before it.
template <typename Block>
SOTTO_HOST_DEVICE void gather_part(const Block& block, const float* x, std::size_t length,
                                   const Bound& bound, Ranks before, const Selected& to,
                                   const GatherRoom& room, std::size_t index) {
  const float* values = rank_part(block, x, length, bound, room, index, nullptr);
  block.each([&](std::uint32_t thread) {
    write_own(values, tile_count(length, index), index * kTile, bound.read(),
              before + room.ranks[thread], to, thread);
  });
}

/// y[indices[k]] ← y[indices[k]] + a × values[k], for all those k of thread `thread` of `threads`
/// among `count`. The indices are distinct.
SOTTO_HOST_DEVICE void scatter_own(float a, const std::uint32_t* indices, const float* values,
                                   std::size_t count, float* y, std::size_t thread,
                                   std::size_t threads) {
  for (std::size_t k = thread; k < count; k += threads) {
    y[indices[k]] = y[indices[k]] + a * values[k];
  }
}

}  // namespace sotto::cuda

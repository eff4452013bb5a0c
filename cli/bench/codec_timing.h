// How long a compressor takes on this machine. Measures time: results vary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <sotto/base/float_vector.h>
#include <sotto/base/workers.h>

namespace sotto::cli {

enum class Clock {
  processor,  ///< of this thread: what else runs on the machine takes turns, and does not count
  elapsed     ///< where several threads work
};

/// The seconds of the fastest of `repeats` calls.
double fastest(int repeats, const std::function<void()>& call, Clock clock = Clock::processor);

/// Normal values; they repeat after 2^20, which no cache level tells from fresh ones.
FloatVector normal_values(std::size_t elements, std::uint64_t seed);

struct CodecTiming {
  std::string spec;         ///< in full
  std::size_t bytes = 0;    ///< of the encoding
  double encode_s = 0;      ///< with error feedback
  double decode_mix_s = 0;  ///< y += weight × C

  /// Billions of bytes a second that must move (docs/performance.md), for vectors of `elements`:
  /// value and error read, error and frame written;
  double encode_gbs(std::size_t elements) const { return gbs(3, elements, encode_s); }
  /// frame and y read, y written.
  double decode_mix_gbs(std::size_t elements) const { return gbs(2, elements, decode_mix_s); }

 private:
  double gbs(double vectors, std::size_t elements, double seconds) const {
    const auto vector = static_cast<double>(elements * sizeof(float));
    return 1e-9 * (vectors * vector + static_cast<double>(bytes)) / seconds;
  }
};

/// Encodes x, and mixes it into y, which has its length; the fastest of `repeats` each. Throws
/// Error for a wrong specification. `workers`, if not null, share the work.
CodecTiming time_codec(const std::string& spec, std::span<const float> x, std::span<float> y,
                       std::uint64_t seed, int repeats, std::shared_ptr<Workers> workers = nullptr,
                       Clock clock = Clock::processor);

}  // namespace sotto::cli

// Times compressors on this machine; results vary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/float_vector.h>
#include <sotto/base/workers.h>

namespace sotto::study {

/// Which time a measurement counts.
enum class Clock {
  processor,  ///< CPU time of the calling thread: other programs on the machine do not count
  elapsed     ///< wall-clock time, for work of several threads
};

/// Seconds of calls that do the same.
struct Elapsed {
  double fastest = 0;
  double median = 0;
  double slowest = 0;
};

/// The fastest, median and slowest of at least one measurement, in seconds.
Elapsed elapsed_of(std::vector<double> seconds);

/// Times `repeats` calls, one at least.
Elapsed timed(int repeats, const std::function<void()>& call, Clock clock = Clock::processor);

/// Normal values; they repeat after 2^20, which no cache level tells from fresh ones.
FloatVector normal_values(std::size_t elements, std::uint64_t seed);

struct CodecTiming {
  std::string spec;       ///< the compressor's full specification
  std::size_t bytes = 0;  ///< size of the encoding in bytes
  Elapsed encode{};       ///< time to encode, error feedback included
  Elapsed decode_mix{};   ///< time to decode and add: y += weight × C

  /// Bytes that must move (docs/performance.md), for vectors of `elements`: value and error read,
  /// error and frame written;
  double encode_bytes(std::size_t elements) const { return moved(3, elements); }
  /// frame and y read, y written.
  double decode_mix_bytes(std::size_t elements) const { return moved(2, elements); }

 private:
  double moved(double vectors, std::size_t elements) const {
    return vectors * static_cast<double>(elements * sizeof(float)) + static_cast<double>(bytes);
  }
};

/// Encodes x, and mixes it into y, which has its length; `repeats` times each. Throws
/// Error for a wrong specification. `workers`, if not null, share the work.
CodecTiming time_codec(const std::string& spec, std::span<const float> x, std::span<float> y,
                       std::uint64_t seed, int repeats, std::shared_ptr<Workers> workers = nullptr,
                       Clock clock = Clock::processor);

}  // namespace sotto::study

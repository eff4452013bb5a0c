// How long codecs take on a CUDA device. Measures time: results vary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sotto/study/measure/codec_timing.h>

namespace sotto::cli {

struct DeviceTimings {
  std::string device;
  double copy_bandwidth = 0;  ///< billions of bytes a second, reads and writes both counted
  std::vector<study::CodecTiming> codecs{};
};

/// Times each of `specs` on vectors of `elements` elements, and in between, copies on the device;
/// `repeats` times each, by the device's clock. Throws Error for a specification that no
/// device has a codec for, and where there is no device, or no code for one in this build.
DeviceTimings time_on_device(const std::vector<std::string>& specs, std::size_t elements,
                             std::uint64_t seed, int repeats);

}  // namespace sotto::cli

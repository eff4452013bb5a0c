// What `sotto bench codec --device cuda` measures, without what the program needs beside it:
//   gpu_bench ELEMENTS REPEATS JSON
// Fails where at 2^26 elements a codec has less of a copy than it should (docs/gpu.md).
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>

#include "bench/device_timing.h"
#include "number.h"

using namespace sotto;

namespace {

const std::vector<std::string> kSpecs = {"none",    "fp16",         "bf16",           "quant:8",
                                         "quant:4", "quant:2",      "quant:1",        "grid:8:0.01",
                                         "sign",    "sign,chunk=0", "quant:8,chunk=0"};

/// What encoding and decoding should have of a copy, where vectors are long.
constexpr double kWanted = 0.85;
constexpr std::size_t kLong = std::size_t{1} << 26U;
constexpr std::string_view kHeld[] = {"sign", "quant:8", "quant:4"};

/// Billions of bytes a second that encoding moved, in the fastest call.
double encode_gbs(const study::CodecTiming& timing, std::size_t elements) {
  return 1e-9 * timing.encode_bytes(elements) / timing.encode.fastest;
}

/// Decoding and mixing, likewise.
double decode_mix_gbs(const study::CodecTiming& timing, std::size_t elements) {
  return 1e-9 * timing.decode_mix_bytes(elements) / timing.decode_mix.fastest;
}

/// Whether none of those that are held to it falls short; says which does.
bool fast_enough(const cli::DeviceTimings& timings, std::size_t elements) {
  bool enough = true;
  for (const study::CodecTiming& timing : timings.codecs) {
    const double share = std::min(encode_gbs(timing, elements), decode_mix_gbs(timing, elements)) /
                         timings.copy_bandwidth;
    const bool held = std::ranges::any_of(
        kHeld, [&](std::string_view name) { return timing.spec == make_compressor(name)->spec(); });
    if (elements == kLong && held && share < kWanted) {
      fmt::print("SHORT: {} has {:.0f} % of copying where {:.0f} are wanted\n", timing.spec,
                 100 * share, 100 * kWanted);
      enough = false;
    }
  }
  return enough;
}

bool measure(std::size_t elements, int repeats, const std::string& path) {
  const cli::DeviceTimings timings = cli::time_on_device(kSpecs, elements, 0, repeats);
  fmt::print("{}, {} elements, copying: {:.0f} GB/s\n", timings.device, elements,
             timings.copy_bandwidth);
  fmt::print("{:<44} {:>10} {:>8} {:>10} {:>8}\n", "compressor", "encode", "of copy", "decode",
             "of copy");
  std::ofstream json(path);
  json << fmt::format(
      "{{\"device\": \"{}\", \"elements\": {}, \"copy_bandwidth_gbs\": {:.2f}, "
      "\"results\": [",
      timings.device, elements, timings.copy_bandwidth);
  const char* separator = "";
  for (const study::CodecTiming& timing : timings.codecs) {
    const double encode = encode_gbs(timing, elements);
    const double decode = decode_mix_gbs(timing, elements);
    const double limit = timings.copy_bandwidth;
    fmt::print("{:<44} {:>5.0f} GB/s {:>6.0f} % {:>5.0f} GB/s {:>6.0f} %\n", timing.spec, encode,
               100 * encode / limit, decode, 100 * decode / limit);
    json << fmt::format(
        "{}\n  {{\"compressor\": \"{}\", \"encode_gbs\": {:.2f}, "
        "\"encode_fraction\": {:.4f}, \"decode_mix_gbs\": {:.2f}, "
        "\"decode_mix_fraction\": {:.4f}}}",
        separator, timing.spec, encode, encode / limit, decode, decode / limit);
    separator = ",";
  }
  json << "\n]}\n";
  if (!json.flush()) {
    throw Error(fmt::format("{} cannot be written", path));
  }
  return fast_enough(timings, elements);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() != 3) {
    fmt::print(stderr, "usage: gpu_bench ELEMENTS REPEATS JSON\n");
    return 2;
  }
  try {
    return measure(number<std::size_t>(arguments[0]), number<int>(arguments[1]), arguments[2]) ? 0
                                                                                               : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_bench: {}\n", error.what());
    return 1;
  }
}

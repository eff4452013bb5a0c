#include "device_timing.h"

#include <algorithm>
#include <span>

#include <sotto/base/error.h>

#ifdef SOTTO_HAVE_CUDA
#include <functional>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/compress/cuda/codec.h>
#include <sotto/kernels/cuda/memory.h>
#include <sotto/kernels/cuda/ops.h>
#endif

namespace sotto::cli {
namespace {

#ifdef SOTTO_HAVE_CUDA

/// Calls between two looks at the clock, so that what looking costs does not count.
constexpr int kBatch = 10;

study::Elapsed timed_on_device(int repeats, const std::function<void()>& call) {
  call();
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(repeats));
  for (int k = 0; k < repeats; ++k) {
    const double batch = cuda::seconds_on_device([&] {
      for (int turn = 0; turn < kBatch; ++turn) {
        call();
      }
    });
    seconds.push_back(batch / kBatch);
  }
  return study::elapsed_of(std::move(seconds));
}

/// The vectors of one run, on the device.
class DeviceBench {
 public:
  DeviceBench(std::size_t elements, std::uint64_t seed, int repeats)
      : x_(elements * sizeof(float)),
        e_(elements * sizeof(float)),
        outcome_(sizeof(cuda::Outcome)),
        elements_(elements),
        seed_(seed),
        repeats_(repeats) {
    const FloatVector values = study::normal_values(elements, seed);
    cuda::copy_to_device(std::as_bytes(std::span(values)), x_.bytes());
  }

  /// The better of two ways to copy.
  double copy_bandwidth() {
    const study::Elapsed driver =
        timed_on_device(repeats_, [&] { cuda::copy_within(x_.bytes(), e_.bytes(), nullptr); });
    const study::Elapsed kernel =
        timed_on_device(repeats_, [&] { cuda::copy(floats(x_), floats(e_), nullptr); });
    return 2e-9 * static_cast<double>(x_.bytes().size()) / std::min(driver.fastest, kernel.fastest);
  }

  study::CodecTiming time(const std::string& spec) {
    const cuda::Codec codec(spec);
    const cuda::Memory frame(codec.bytes(elements_));
    const cuda::Memory work(codec.workspace(elements_));
    auto* outcome = outcome_.as<cuda::Outcome>(0, 1).data();
    RandomKey key{.seed = seed_, .purpose = Purpose::quantize};
    study::CodecTiming timing = {.spec = codec.spec(), .bytes = frame.bytes().size()};
    cuda::fill(0, floats(e_), nullptr);
    timing.encode = timed_on_device(repeats_, [&] {
      codec.encode_residual(floats(x_), floats(e_), key, frame.bytes(), work.bytes(), outcome,
                            nullptr);
      ++key.round;
    });
    cuda::fill(0, floats(e_), nullptr);
    timing.decode_mix = timed_on_device(repeats_, [&] {
      check(codec.decode_add(frame.bytes(), 0.25F, floats(e_), outcome, nullptr).ok(),
            "an own encoding has its length");
    });
    cuda::Outcome found;
    cuda::copy_to_host(outcome_.bytes(), std::as_writable_bytes(std::span(&found, 1)));
    check(found.status().ok(), "an own encoding decodes");
    return timing;
  }

 private:
  std::span<float> floats(const cuda::Memory& memory) const {
    return memory.as<float>(0, elements_);
  }

  cuda::Memory x_;
  cuda::Memory e_;
  cuda::Memory outcome_;
  std::size_t elements_;
  std::uint64_t seed_;
  int repeats_;
};

#endif

}  // namespace

#ifdef SOTTO_HAVE_CUDA

DeviceTimings time_on_device(const std::vector<std::string>& specs, std::size_t elements,
                             std::uint64_t seed, int repeats) {
  for (const std::string& spec : specs) {
    (void)cuda::Codec(spec);  // refuse before measuring
  }
  if (const Status status = cuda::device_status(); !status.ok()) {
    refuse("device", "cuda", status.message());
  }
  DeviceBench bench(elements, seed, repeats);
  DeviceTimings timings;
  timings.device = cuda::device_name();
  for (const std::string& spec : specs) {
    timings.copy_bandwidth = std::max(timings.copy_bandwidth, bench.copy_bandwidth());
    timings.codecs.push_back(bench.time(spec));
  }
  if (const Status status = cuda::synchronize(); !status.ok()) {
    throw Error(status.message());
  }
  return timings;
}

#else

DeviceTimings time_on_device(const std::vector<std::string>& /*specs*/, std::size_t /*elements*/,
                             std::uint64_t /*seed*/, int /*repeats*/) {
  refuse("device", "cuda",
         "this sotto was built without CUDA; build with -DSOTTO_WITH_CUDA=ON where nvcc is "
         "(docs/gpu.md)");
}

#endif

}  // namespace sotto::cli

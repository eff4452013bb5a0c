#include <sotto/study/measure/codec_timing.h>

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

#include <sotto/base/check.h>
#include <sotto/base/philox.h>
#include <sotto/compress/error_feedback.h>
#include <sotto/compress/registry.h>
#include <sotto/kernels/ops.h>

namespace sotto::study {
namespace {

constexpr std::size_t kFreshValues = std::size_t{1} << 20;

double seconds_of(Clock clock) {
  const clockid_t id = clock == Clock::processor ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  timespec now{};
  check(::clock_gettime(id, &now) == 0, "the clock is read");
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

Elapsed elapsed_of(std::vector<double> seconds) {
  check(!seconds.empty(), "something was timed");
  std::sort(seconds.begin(), seconds.end());
  return {seconds.front(), seconds[(seconds.size() - 1) / 2], seconds.back()};
}

Elapsed timed(int repeats, const std::function<void()>& call, Clock clock) {
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(repeats));
  for (int k = 0; k < repeats; ++k) {
    const double start = seconds_of(clock);
    call();
    seconds.push_back(seconds_of(clock) - start);
  }
  return elapsed_of(std::move(seconds));
}

FloatVector normal_values(std::size_t elements, std::uint64_t seed) {
  FloatVector values(elements);
  RandomStream stream({.seed = seed, .purpose = Purpose::measure});
  for (std::size_t k = 0; k < elements; ++k) {
    values[k] = k < kFreshValues ? static_cast<float>(stream.normal()) : values[k - kFreshValues];
  }
  return values;
}

CodecTiming time_codec(const std::string& spec, std::span<const float> x, std::span<float> y,
                       std::uint64_t seed, int repeats, std::shared_ptr<Workers> workers,
                       Clock clock) {
  ErrorFeedback feedback(make_compressor(spec), x.size(), host_ops());
  feedback.compressor().set_workers(std::move(workers));
  std::vector<std::byte> frame(feedback.compressor().max_bytes(x.size()));
  RandomKey key{.seed = seed, .purpose = Purpose::quantize};
  CodecTiming timing = {.spec = feedback.compressor().spec()};
  timing.encode = timed(
      repeats,
      [&] {
        timing.bytes = feedback.encode(x, key, frame);
        ++key.round;
      },
      clock);
  std::fill(y.begin(), y.end(), 0.0F);
  const auto encoding = std::span<const std::byte>(frame).first(timing.bytes);
  timing.decode_mix = timed(
      repeats,
      [&] {
        check(feedback.compressor().decode_add(encoding, 0.25F, y).ok(), "an own encoding decodes");
      },
      clock);
  return timing;
}

}  // namespace sotto::study

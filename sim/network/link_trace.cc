#include <sotto/sim/network/link_trace.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/sim/network/platform.h>

namespace sotto {
namespace {

double mean_over(const StepTimes& steps, const auto& values) {
  const std::size_t last = steps.at.size() - 1;
  const auto length = [&](std::size_t step) {
    if (step < last) {
      return static_cast<double>(steps.at[step + 1] - steps.at[step]);
    }
    if (steps.period != kNever) {
      return static_cast<double>(steps.period - steps.at[last]);
    }
    return last == 0 ? 1.0 : static_cast<double>(steps.at[last]) / static_cast<double>(last);
  };
  double sum = 0;
  double whole = 0;
  for (std::size_t step = 0; step <= last; ++step) {
    sum += length(step) * static_cast<double>(values[step]);
    whole += length(step);
  }
  return sum / whole;
}

[[noreturn]] void refuse_it(const char* why) { refuse("trace of a link", "it", why); }

}  // namespace

void validate(const TracedLink& traced) {
  if (traced.trace == nullptr || traced.start < 0 || !(traced.times > 0) ||
      !std::isfinite(traced.times)) {
    refuse_it(
        "there must be one, from a time of 0 or more on, more than 0 times as wide, "
        "and not infinitely");
  }
}

void validate(const LinkTrace& trace) {
  if (!trace.steps.valid() || trace.bytes_per_s.size() != trace.steps.at.size() ||
      (!trace.latency.empty() && trace.latency.size() != trace.steps.at.size())) {
    refuse_it("its steps must ascend from 0, with a bandwidth each");
  }
  const auto rate = [](double bytes_per_s) { return bytes_per_s >= 0 && bytes_per_s < kUnlimited; };
  if (!std::ranges::all_of(trace.bytes_per_s, rate) ||
      std::ranges::all_of(trace.bytes_per_s, [](double bytes_per_s) { return bytes_per_s == 0; })) {
    refuse_it("its bandwidths must be 0 or more and finite, and not all 0");
  }
  if (!std::ranges::all_of(trace.latency,
                           [](SimTime span) { return span >= 0 && span <= kMostLatency; })) {
    refuse_it("its latencies must be 0 or more, and no more than 11 days");
  }
}

double mean_bandwidth(const LinkTrace& trace) { return mean_over(trace.steps, trace.bytes_per_s); }

SimTime mean_latency(const LinkTrace& trace) {
  return trace.latency.empty()
             ? 0
             : static_cast<SimTime>(std::llround(mean_over(trace.steps, trace.latency)));
}

}  // namespace sotto

#include <sotto/sim/compute_time.h>

#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>

namespace sotto {

void validate(const ComputeTime& time) {
  const auto require = [](bool holds, const char* field, double value, const char* reason) {
    if (!holds) {
      refuse(field, fmt::format("{}", value), reason);
    }
  };
  require(time.seconds >= 0 && std::isfinite(time.seconds), "compute time", time.seconds,
          "it must be 0 or more seconds");
  const double most = time.kind == ComputeTime::Kind::uniform ? 1 : 100;
  require(time.spread >= 0 && time.spread <= most, "spread of the compute time", time.spread,
          "it must lie in 0 … 1 (uniform), or be 0 or more (lognormal)");
  require(time.slowdown > 0 && std::isfinite(time.slowdown), "slowdown", time.slowdown,
          "it must be positive");
  require(time.stall_probability >= 0 && time.stall_probability <= 1, "stall probability",
          time.stall_probability, "it must lie in 0 … 1");
  require(time.stall_factor > 0 && std::isfinite(time.stall_factor), "stall factor",
          time.stall_factor, "it must be positive");
}

double mean_seconds(const ComputeTime& time) {
  const bool lognormal = time.kind == ComputeTime::Kind::lognormal;
  const double factor = lognormal ? std::exp(time.spread * time.spread / 2) : 1;
  const double stalls = 1 + time.stall_probability * (time.stall_factor - 1);
  return time.seconds * time.slowdown * factor * stalls;
}

SimTime draw(const ComputeTime& time, std::uint64_t seed, Rank rank, Round round) {
  RandomStream random(
      {.seed = seed, .rank = rank, .round = round, .purpose = Purpose::compute_time});
  double seconds = time.seconds * time.slowdown;
  switch (time.kind) {
    case ComputeTime::Kind::fixed:
      break;
    case ComputeTime::Kind::uniform:
      seconds *= 1 + time.spread * (2 * random.uniform() - 1);
      break;
    case ComputeTime::Kind::lognormal:
      seconds *= std::exp(time.spread * random.normal());
      break;
    case ComputeTime::Kind::exponential:
      seconds *= -std::log1p(-random.uniform());
      break;
  }
  if (time.stall_probability > 0 && random.uniform() < time.stall_probability) {
    seconds *= time.stall_factor;
  }
  return from_seconds(seconds);
}

}  // namespace sotto

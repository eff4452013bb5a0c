#include <sotto/study/compute_spec.h>

#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

/// "lognormal:20 ms,0.3" → lognormal, "20 ms", "0.3"
std::vector<std::string> words_of(const std::string& spec) {
  std::vector<std::string> words = {spec.substr(0, spec.find(':'))};
  if (words[0].size() == spec.size()) {
    return words;
  }
  std::size_t from = words[0].size() + 1;
  while (true) {
    const auto comma = spec.find(',', from);
    words.push_back(spec.substr(from, comma - from));
    if (comma == std::string::npos) {
      return words;
    }
    from = comma + 1;
  }
}

double parse_spread(const std::string& text) {
  const auto value = parse_number<double>(text, 0, 10);
  if (!value) {
    throw Error(fmt::format("'{}' is no spread; it is a number from 0 to 10", text));
  }
  return *value;
}

double seconds_of(const std::string& text) { return to_seconds(parse_duration(text)); }

}  // namespace

ComputeTime parse_compute_time(const std::string& spec) {
  using Kind = ComputeTime::Kind;
  const auto words = words_of(spec);
  const std::string& name = words[0];
  if (words.size() == 1) {
    return {.seconds = seconds_of(name)};
  }
  if (name == "exponential" && words.size() == 2) {
    return {.kind = Kind::exponential, .seconds = seconds_of(words[1])};
  }
  if (name == "lognormal" && words.size() == 3) {
    return {
        .kind = Kind::lognormal, .seconds = seconds_of(words[1]), .spread = parse_spread(words[2])};
  }
  if (name == "uniform" && words.size() == 3) {
    const double low = seconds_of(words[1]);
    const double high = seconds_of(words[2]);
    if (low > high || high == 0) {
      throw Error(fmt::format("'{}': the first duration must be the shorter one", spec));
    }
    const double middle = (low + high) / 2;
    return {.kind = Kind::uniform, .seconds = middle, .spread = (high - middle) / middle};
  }
  throw Error(
      fmt::format("'{}' is none of DURATION, uniform:LEAST,MOST, lognormal:MEDIAN,SIGMA "
                  "and exponential:MEAN, e.g. \"lognormal:20 ms,0.3\"",
                  spec));
}

std::string compute_time_text(const ComputeTime& time) {
  check(time.stall_probability == 0, "stalls have no text");
  const auto duration = [](double seconds) { return fmt::format("{}ns", from_seconds(seconds)); };
  const double seconds = time.seconds * time.slowdown;
  switch (time.kind) {
    case ComputeTime::Kind::fixed:
      break;
    case ComputeTime::Kind::uniform:
      return fmt::format("uniform:{},{}", duration(seconds * (1 - time.spread)),
                         duration(seconds * (1 + time.spread)));
    case ComputeTime::Kind::lognormal:
      return fmt::format("lognormal:{},{}", duration(seconds), time.spread);
    case ComputeTime::Kind::exponential:
      return fmt::format("exponential:{}", duration(seconds));
  }
  return duration(seconds);
}

}  // namespace sotto::study

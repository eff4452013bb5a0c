#include <sotto/optim/schedule.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/number.h>

namespace sotto {
namespace {

constexpr std::string_view kShapes =
    "constant, step:EVERY[:FACTOR], cosine[:FLOOR] or invsqrt:EVERY, with an optional "
    ",warmup=ROUNDS";

struct ShapeName {
  Schedule::Shape shape;
  std::string_view name;
};

constexpr auto kNames = std::to_array<ShapeName>({{Schedule::Shape::constant, "constant"},
                                                  {Schedule::Shape::step, "step"},
                                                  {Schedule::Shape::cosine, "cosine"},
                                                  {Schedule::Shape::inverse_sqrt, "invsqrt"}});

/// Cuts the part before the next `separator` off `rest`.
std::string_view next_part(std::string_view& rest, char separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view part = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + 1);
  return part;
}

template <typename T>
T read_part(std::string_view text, std::string_view spec, std::string_view what) {
  const auto value = parse_number<T>(text);
  if (!value) {
    refuse("schedule", spec, fmt::format("'{}' is no {}; give {}", text, what, kShapes));
  }
  return *value;
}

Round parse_period(std::string_view text, std::string_view spec) {
  const auto rounds = read_part<Round>(text, spec, "number of rounds");
  if (rounds == 0) {
    refuse("schedule", spec, "EVERY must be at least 1 round");
  }
  return rounds;
}

double parse_fraction(std::string_view text, std::string_view spec, std::string_view what) {
  const auto value = read_part<double>(text, spec, what);
  if (!(value >= 0 && value <= 1)) {
    refuse("schedule", spec, fmt::format("the {} must lie in 0 … 1", what));
  }
  return value;
}

}  // namespace

double Schedule::multiplier(Round round) const {
  if (round < warmup) {
    return static_cast<double>(round + 1) / static_cast<double>(warmup);
  }
  const Round t = round - warmup;
  const Round period = std::max<Round>(every, 1);
  switch (shape) {
    case Shape::constant:
      return 1;
    case Shape::step: {
      const Round drops = t / period;
      return std::pow(factor, static_cast<double>(drops));
    }
    case Shape::cosine: {
      const Round span = total > warmup ? total - warmup : 1;
      const double progress = static_cast<double>(std::min(t, span)) / static_cast<double>(span);
      return floor + (1 - floor) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
    }
    case Shape::inverse_sqrt:
      return 1 / std::sqrt(1 + static_cast<double>(t) / static_cast<double>(period));
  }
  return 1;
}

std::string Schedule::spec() const {
  std::string text(std::ranges::find(kNames, shape, &ShapeName::shape)->name);
  switch (shape) {
    case Shape::constant:
      break;
    case Shape::step:
      text += fmt::format(":{}:{}", every, factor);
      break;
    case Shape::cosine:
      text += fmt::format(":{}", floor);
      break;
    case Shape::inverse_sqrt:
      text += fmt::format(":{}", every);
      break;
  }
  return warmup == 0 ? text : fmt::format("{},warmup={}", text, warmup);
}

std::vector<std::string> schedule_names() { return names_of(kNames); }

Schedule parse_schedule(std::string_view spec, Round total) {
  Schedule schedule;
  schedule.total = total;
  std::string_view options = spec;
  std::string_view arguments = next_part(options, ',');
  const auto* const known = std::ranges::find(kNames, next_part(arguments, ':'), &ShapeName::name);
  if (known == kNames.end()) {
    refuse_unknown("schedule", spec, schedule_names(), {std::string(kShapes)});
  }
  schedule.shape = known->shape;
  if (schedule.shape == Schedule::Shape::step) {
    schedule.every = parse_period(next_part(arguments, ':'), spec);
    if (!arguments.empty()) {
      schedule.factor = parse_fraction(next_part(arguments, ':'), spec, "factor");
    }
  } else if (schedule.shape == Schedule::Shape::cosine && !arguments.empty()) {
    schedule.floor = parse_fraction(next_part(arguments, ':'), spec, "floor");
  } else if (schedule.shape == Schedule::Shape::inverse_sqrt) {
    schedule.every = parse_period(next_part(arguments, ':'), spec);
  }
  if (!arguments.empty()) {
    refuse("schedule", spec, fmt::format("'{}' is left over; give {}", arguments, kShapes));
  }
  if (!options.empty()) {
    constexpr std::string_view kWarmup = "warmup=";
    if (!options.starts_with(kWarmup)) {
      refuse("schedule", spec, fmt::format("'{}' is no option; give {}", options, kShapes));
    }
    schedule.warmup = read_part<Round>(options.substr(kWarmup.size()), spec, "number of rounds");
  }
  if (schedule.shape == Schedule::Shape::cosine && total <= schedule.warmup) {
    refuse("schedule", spec,
           fmt::format("a cosine needs a run longer than its warm-up of {} rounds, not one of {}",
                       schedule.warmup, total));
  }
  return schedule;
}

}  // namespace sotto

#include <sotto/study/units.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>

namespace sotto::study {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

constexpr std::array<Unit, 7> kDurations = {
    {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}}};
constexpr std::array<Unit, 8> kRates = {{{"bit/s", 0.125},
                                         {"kbit/s", 125},
                                         {"Mbit/s", 125e3},
                                         {"Gbit/s", 125e6},
                                         {"B/s", 1},
                                         {"kB/s", 1e3},
                                         {"MB/s", 1e6},
                                         {"GB/s", 1e9}}};
constexpr std::array<Unit, 5> kSizes = {
    {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}}};
constexpr double kLongest = 100.0 * 366 * 24 * 3600e9;

/// The number in front, and what follows it without blanks. NaN when there is none.
std::pair<double, std::string_view> split(std::string_view text) {
  text = trimmed(text);
  const double number = take_number<double>(text).value_or(std::nan(""));
  return {number, trimmed(text)};
}

/// The number times its unit's size; NaN when that is no unit.
template <std::size_t N>
double in_units(std::string_view text, const std::array<Unit, N>& units) {
  const auto [number, name] = split(text);
  for (const Unit& unit : units) {
    if (!name.empty() && unit.name == name) {
      return number * unit.size;
    }
  }
  return number == 0 && name.empty() ? 0 : std::nan("");
}

}  // namespace

SimTime parse_duration(std::string_view text) {
  const double found = in_units(text, kDurations);
  if (!(found >= 0 && found <= kLongest)) {
    throw Error("'" + std::string(text) +
                "' is no duration; write a number and ns, us, ms, s, min or h, e.g. \"20 ms\"");
  }
  return std::llround(found);
}

double parse_bandwidth(std::string_view text) {
  const double found = in_units(text, kRates);
  if (!(found > 0 && std::isfinite(found))) {
    throw Error("'" + std::string(text) +
                "' is no bandwidth; write a positive number and bit/s, kbit/s, Mbit/s, Gbit/s, or "
                "B/s, kB/s, MB/s, GB/s, e.g. \"100 Mbit/s\"");
  }
  return found;
}

double parse_size(std::string_view text) {
  const double found = in_units(text, kSizes);
  if (!(found > 0 && std::isfinite(found))) {
    throw Error("'" + std::string(text) +
                "' is no size; write a positive number and B, kB, MB, GB or TB, e.g. \"2 GB\"");
  }
  return found;
}

std::string percent(double fraction) {
  return std::isnan(fraction) ? "–" : fmt::format("{:.2f} %", 100 * fraction);
}

std::string amount(double bytes) {
  const char* unit = "B";
  for (const char* larger : {"kB", "MB", "GB", "TB"}) {
    if (bytes < 1000) {
      break;
    }
    bytes /= 1000;
    unit = larger;
  }
  return fmt::format("{:.3g} {}", bytes, unit);
}

double exact_seconds(SimTime time) { return static_cast<double>(time) / 1e9; }

std::string rate_text(double bytes_per_s) {
  if (std::isinf(bytes_per_s)) {
    return "no limit";
  }
  double bits = 8 * bytes_per_s;
  const char* unit = "bit/s";
  for (const char* larger : {"kbit/s", "Mbit/s", "Gbit/s"}) {
    if (bits < 1000) {
      break;
    }
    bits /= 1000;
    unit = larger;
  }
  return fmt::format("{:.4g} {}", bits, unit);
}

std::string duration_text(double seconds) {
  if (seconds == 0) {
    return "0 s";
  }
  return seconds >= 1000   ? fmt::format("{:.0f} s", seconds)
         : seconds >= 1    ? fmt::format("{:.4g} s", seconds)
         : seconds >= 1e-3 ? fmt::format("{:.4g} ms", 1e3 * seconds)
                           : fmt::format("{:.4g} µs", 1e6 * seconds);
}

std::string counted(std::uint64_t number, std::string_view thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

}  // namespace sotto::study

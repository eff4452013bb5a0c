#include <sotto/study/unit_text.h>

#include <cmath>

#include <fmt/format.h>

namespace sotto::study {

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

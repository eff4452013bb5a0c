#include "units.h"

#include <cmath>

#include <fmt/format.h>

namespace sotto::cli {

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

}  // namespace sotto::cli

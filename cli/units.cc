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

std::string counted(std::uint64_t number, std::string_view thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

}  // namespace sotto::cli

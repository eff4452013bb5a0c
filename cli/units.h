// Figures as people read them. Pure functions; thread-safe.
#pragma once

#include <string>

namespace sotto::cli {

/// 0.9313 → "93.13 %"; NaN → "–".
std::string percent(double fraction);
/// 1234567 → "1.23 MB"
std::string amount(double bytes);

}  // namespace sotto::cli

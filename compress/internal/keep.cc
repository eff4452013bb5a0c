#include "keep.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto::internal {

std::size_t kept_elements(double keep_ratio, std::size_t elements) {
  if (elements == 0) {
    return 0;
  }
  const double exact = std::ceil(keep_ratio * static_cast<double>(elements));
  return std::clamp<std::size_t>(static_cast<std::size_t>(exact), 1, elements);
}

void check_keep_ratio(double keep_ratio) {
  if (!(keep_ratio > 0 && keep_ratio <= 1)) {
    refuse("KEEP", fmt::format("{}", keep_ratio),
           "it is the share of elements to keep; a number in (0, 1] would do");
  }
}

}  // namespace sotto::internal

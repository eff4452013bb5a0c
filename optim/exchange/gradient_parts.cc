#include <sotto/optim/exchange/gradient_parts.h>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {

void GradientParts::require(std::size_t first, std::size_t elements, std::size_t parameters) const {
  const auto refuse_part = [&](const SettingText& why) {
    refuse("gradient_part", fmt::format("{} elements from {} on", elements, first), why);
  };
  if (first > parameters || elements > parameters - first) {
    refuse_part(fmt::format("there are {} parameters", parameters));
  }
  if (overlap(first, elements)) {
    refuse_part("some of them have been in another part of this step's gradient");
  }
}

void GradientParts::require_all(std::size_t parameters) const {
  if (elements_ != parameters) {
    refuse("gradient", fmt::format("{} elements", elements_),
           fmt::format("the parameters have {}, and each is to be in one part", parameters));
  }
}

}  // namespace sotto

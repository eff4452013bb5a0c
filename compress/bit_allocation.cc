#include <sotto/compress/bit_allocation.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace sotto {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

/// The least loss that a part can have; infinity: no option is finite.
double least_loss(const std::vector<EncodingOption>& options) {
  double least = kNone;
  for (const EncodingOption& option : options) {
    least = std::isfinite(option.loss) ? std::min(least, option.loss) : least;
  }
  return least;
}

/// Steps of the room that an option takes beyond the least loss of its part, rounded up; more than
/// kLossSteps: it does not fit.
std::size_t steps_of(const EncodingOption& option, double least, double room) {
  const double beyond = option.loss - least;
  if (!std::isfinite(option.loss) || beyond > room) {
    return kLossSteps + 1;
  }
  if (beyond <= 0 || room == kNone) {
    return 0;
  }
  return static_cast<std::size_t>(std::ceil(beyond / room * kLossSteps));
}

/// The best choices for the parts so far: bytes, and the loss among equals.
struct Best {
  double bytes = kNone;
  double loss = kNone;

  bool operator<(const Best& other) const {
    return bytes < other.bytes || (bytes == other.bytes && loss < other.loss);
  }
};

}  // namespace

std::optional<std::vector<std::size_t>> allocate_bits(
    std::span<const std::vector<EncodingOption>> parts, double most_loss) {
  double room = most_loss;
  for (const auto& options : parts) {
    room -= least_loss(options);
  }
  if (!(room >= 0)) {
    return std::nullopt;
  }
  std::vector<Best> best(kLossSteps + 1, Best{0, 0});  // by steps that may be taken
  std::vector<std::vector<std::size_t>> taken;         // by part and steps: the option
  for (const auto& options : parts) {
    std::vector<Best> next(best.size());
    auto& choice = taken.emplace_back(best.size());
    const double least = least_loss(options);
    for (std::size_t k = 0; k < options.size(); ++k) {
      const std::size_t steps = steps_of(options[k], least, room);
      for (std::size_t j = steps; j <= kLossSteps; ++j) {
        const Best& before = best[j - steps];
        const Best with{before.bytes + static_cast<double>(options[k].bytes),
                        before.loss + options[k].loss};
        if (with < next[j]) {
          next[j] = with;
          choice[j] = k;
        }
      }
    }
    best = std::move(next);
  }
  std::vector<std::size_t> chosen(parts.size());
  std::size_t left = kLossSteps;
  for (std::size_t i = parts.size(); i-- > 0;) {
    chosen[i] = taken[i][left];
    left -= steps_of(parts[i][chosen[i]], least_loss(parts[i]), room);
  }
  return chosen;
}

}  // namespace sotto

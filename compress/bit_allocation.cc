#include <sotto/compress/bit_allocation.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace sotto {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

/// An option as the knapsack sees it.
struct Item {
  double spent = 0;  ///< of what is bounded; infinity: it may not be taken
  double cost = 0;   ///< whose sum is to be least
};
using Items = std::vector<std::vector<Item>>;

/// The least that a part can spend; infinity: it has no option.
double least_spent(const std::vector<Item>& items) {
  double least = kNone;
  for (const Item& item : items) {
    least = std::min(least, item.spent);
  }
  return least;
}

/// Steps of the room that an item takes beyond the least of its part, rounded up; more than
/// kAllocationSteps: it does not fit.
std::size_t steps_of(const Item& item, double least, double room) {
  const double beyond = item.spent - least;
  if (item.spent == kNone || beyond > room) {
    return kAllocationSteps + 1;
  }
  if (beyond <= 0 || room == kNone) {
    return 0;
  }
  return static_cast<std::size_t>(std::ceil(beyond / room * kAllocationSteps));
}

/// The best choices for the parts so far: their cost, and what is spent among equals.
struct Best {
  double cost = kNone;
  double spent = kNone;

  bool operator<(const Best& other) const {
    return cost < other.cost || (cost == other.cost && spent < other.spent);
  }
};

/// For each part the place of its item; none where even the least that is spent exceeds `most`.
std::optional<std::vector<std::size_t>> solve(const Items& parts, double most) {
  double room = most;
  for (const auto& items : parts) {
    room -= least_spent(items);
  }
  if (!(room >= 0)) {
    return std::nullopt;
  }
  std::vector<Best> best(kAllocationSteps + 1, Best{0, 0});  // by steps that may be taken
  std::vector<std::vector<std::size_t>> taken;               // by part and steps: the item
  for (const auto& items : parts) {
    std::vector<Best> next(best.size());
    auto& choice = taken.emplace_back(best.size());
    const double least = least_spent(items);
    for (std::size_t k = 0; k < items.size(); ++k) {
      const std::size_t steps = steps_of(items[k], least, room);
      for (std::size_t j = steps; j <= kAllocationSteps; ++j) {
        const Best& before = best[j - steps];
        const Best with{before.cost + items[k].cost, before.spent + items[k].spent};
        if (with < next[j]) {
          next[j] = with;
          choice[j] = k;
        }
      }
    }
    best = std::move(next);
  }
  std::vector<std::size_t> chosen(parts.size());
  std::size_t left = kAllocationSteps;
  for (std::size_t i = parts.size(); i-- > 0;) {
    chosen[i] = taken[i][left];
    left -= steps_of(parts[i][chosen[i]], least_spent(parts[i]), room);
  }
  return chosen;
}

/// Gives what rounding up has left of `most` to the parts that gain most by it, one after another.
void use_rest(const Items& parts, double most, std::vector<std::size_t>& chosen) {
  double spent = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    spent += parts[i][chosen[i]].spent;
  }
  while (true) {
    double gain = 0;
    std::size_t part = 0;
    std::size_t item = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Item& now = parts[i][chosen[i]];
      for (std::size_t k = 0; k < parts[i].size(); ++k) {
        const Item& other = parts[i][k];
        if (spent - now.spent + other.spent <= most && now.cost - other.cost > gain) {
          gain = now.cost - other.cost;
          part = i;
          item = k;
        }
      }
    }
    if (gain <= 0) {
      return;
    }
    spent += parts[part][item].spent - parts[part][chosen[part]].spent;
    chosen[part] = item;
  }
}

}  // namespace

std::optional<std::vector<std::size_t>> allocate_bits(
    std::span<const std::vector<EncodingOption>> parts, double most_loss) {
  Items items;
  for (const auto& options : parts) {
    auto& part = items.emplace_back();
    for (const EncodingOption& option : options) {
      part.push_back({.spent = std::isfinite(option.loss) ? option.loss : kNone,
                      .cost = static_cast<double>(option.bytes)});
    }
  }
  return solve(items, most_loss);
}

std::optional<std::vector<std::size_t>> allocate_bytes(
    std::span<const std::vector<EncodingOption>> parts, std::size_t most_bytes) {
  Items items;
  for (const auto& options : parts) {
    auto& part = items.emplace_back();
    for (const EncodingOption& option : options) {
      const bool usable = std::isfinite(option.loss);
      part.push_back({.spent = usable ? static_cast<double>(option.bytes) : kNone,
                      .cost = usable ? option.loss : kNone});
    }
  }
  auto chosen = solve(items, static_cast<double>(most_bytes));
  if (chosen) {
    use_rest(items, static_cast<double>(most_bytes), *chosen);
  }
  return chosen;
}

}  // namespace sotto

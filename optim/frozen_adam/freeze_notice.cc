#include <sotto/optim/frozen_adam/freeze_notice.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sotto {
namespace {

constexpr std::size_t kMostTensorsNamed = 4;

/// A tensor with parameters that have no variance.
struct Still {
  const ParameterBlock* block;
  std::size_t count;
};

/// "wte.weight (12 of 40), head.bias (3 of 3) and 2 other tensors", those with the most first.
std::string name_largest(std::vector<Still> tensors) {
  std::ranges::stable_sort(tensors, std::ranges::greater(), &Still::count);
  std::string text;
  const std::size_t named = std::min(tensors.size(), kMostTensorsNamed);
  for (std::size_t i = 0; i < named; ++i) {
    text += fmt::format("{}{} ({} of {})", i == 0 ? "" : ", ", tensors[i].block->name,
                        tensors[i].count, tensors[i].block->size);
  }
  if (const std::size_t others = tensors.size() - named; others > 0) {
    text += fmt::format(" and {} other tensor{}", others, others == 1 ? "" : "s");
  }
  return text;
}

}  // namespace

std::optional<std::string> describe_zero_variance(const ParameterLayout& layout,
                                                  std::span<const float> variance,
                                                  Round freeze_step) {
  std::vector<Still> tensors;
  std::size_t still = 0;
  for (const ParameterBlock& block : layout) {
    const auto count = static_cast<std::size_t>(std::ranges::count(block.of(variance), 0.0F));
    if (count > 0) {
      tensors.push_back({&block, count});
      still += count;
    }
  }
  if (still == 0) {
    return std::nullopt;
  }
  return fmt::format(
      "{} of {} parameters had no gradient before Adam's variance was frozen (freeze_step {}): {}; "
      "those that get one now send it in full precision until they have a variance too, a few "
      "bytes each instead of a bit; where most of them are to learn, freeze later",
      still, variance.size(), freeze_step, name_largest(std::move(tensors)));
}

std::vector<std::string> FreezeNotice::take(const ParameterLayout& layout,
                                            std::span<const float> variance, Round freeze_step) {
  if (std::exchange(taken_, true)) {
    return {};
  }
  auto text = describe_zero_variance(layout, variance, freeze_step);
  return text ? std::vector<std::string>{std::move(*text)} : std::vector<std::string>();
}

}  // namespace sotto

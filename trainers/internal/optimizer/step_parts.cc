#include "step_parts.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/text.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/step_rule_info.h>

namespace sotto::internal {
namespace {

[[noreturn]] void refuse_part(std::size_t first, std::size_t elements, const SettingText& why) {
  refuse("gradient_part", fmt::format("{} elements from {} on", elements, first), why);
}

/// What a run must be like to take gradients in parts.
SettingText needs_of_parts() {
  const auto cut = names_with(algorithms(), [](const AlgorithmInfo& info) {
    return info.takes_buckets() && info.cutting != Cutting::by_itself;
  });
  const auto whole = names_with(step_rules(), std::not_fn(&StepRuleInfo::separable));
  return "this run takes gradients whole: parts need an algorithm with " + mention("buckets") +
         fmt::format(
             " ({}), another transport than nccl, no clipping, privacy or local "
             "steps, and no {} or step rule of the program's own that takes them "
             "whole",
             word_list(cut), word_list(whole));
}

}  // namespace

void StepParts::require(std::size_t first, std::size_t elements, bool taken) const {
  if (!taken) {
    refuse_part(first, elements, needs_of_parts());
  }
  parts_.require(first, elements, parameters_);
  if (settings_.takes_any_part()) {
    return;
  }
  const auto cuts = [&](const ParameterBlock& tensor) {
    const auto inside = [&](std::size_t place) {
      return place > tensor.offset && place < tensor.offset + tensor.size;
    };
    return elements > 0 && (inside(first) || inside(first + elements));
  };
  if (const auto cut = std::ranges::find_if(layout_, cuts); cut != layout_.end()) {
    refuse_part(first, elements,
                fmt::format("it cuts the tensor {}, and the step rule takes whole ones",
                            excerpt(cut->name)));
  }
}

void StepParts::require_none() const {
  if (!parts_.empty()) {
    throw Error("gradient",
                "parts of it were given; give the rest, and end this step by its parts first");
  }
}

}  // namespace sotto::internal

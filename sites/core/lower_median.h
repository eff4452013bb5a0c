// The median that a minority of liars cannot lift: of an even number of values the lower one.
// A pure function; thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <ranges>
#include <type_traits>
#include <vector>

namespace sotto::sites {

/// The median of what `value` makes of the items, the lower one of an even number; 0 of none.
template <std::ranges::forward_range Items, typename Value = std::identity>
auto lower_median(const Items& items, Value value = {}) {
  using Number = std::decay_t<std::invoke_result_t<Value&, std::ranges::range_reference_t<Items>>>;
  std::vector<Number> values;
  std::ranges::transform(items, std::back_inserter(values), value);
  if (values.empty()) {
    return Number{};
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace sotto::sites

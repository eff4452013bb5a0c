#include <sotto/groups/node_grid.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>

namespace sotto {
namespace {

constexpr std::string_view kForm = "write axes as NAME=SIZE, with commas between: data=4,expert=2";

bool is_axis_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

int axis_size(std::string_view text, std::string_view grid) {
  int size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{} || end != text.data() + text.size() || size < 1) {
    refuse("grid", grid,
           fmt::format("'{}' is no number of nodes from 1 on; {}", excerpt(text), kForm));
  }
  return size;
}

}  // namespace

NodeGrid::NodeGrid(std::string_view text, int nodes) : nodes_(nodes) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, equals);
    if (equals == part.size() || !is_axis_name(name)) {
      refuse("grid", text, fmt::format("'{}' is no axis with a size; {}", excerpt(part), kForm));
    }
    if (std::ranges::any_of(axes_, [name](const Axis& axis) { return axis.name == name; })) {
      refuse("grid", text, fmt::format("the axis {} stands twice; give each its own name", name));
    }
    axes_.push_back(
        {.name = std::string(name), .size = axis_size(part.substr(equals + 1), text), .stride = 1});
  }
  if (axes_.size() > kMostAxes) {
    refuse("grid", text, fmt::format("it has {} axes; take {} at most", axes_.size(), kMostAxes));
  }
  std::int64_t product = 1;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    axis->stride = static_cast<int>(product);
    product = std::min<std::int64_t>(product * axis->size, std::numeric_limits<int>::max());
  }
  if (product != nodes) {
    refuse("grid", text,
           fmt::format("its sizes multiply to {}, and there are {} nodes; make them equal", product,
                       nodes));
  }
}

std::vector<std::string_view> NodeGrid::axes() const {
  std::vector<std::string_view> names;
  for (const Axis& axis : axes_) {
    names.emplace_back(axis.name);
  }
  return names;
}

std::size_t NodeGrid::index_of(std::string_view axis) const {
  const auto at = std::ranges::find(axes_, axis, &Axis::name);
  if (at == axes_.end()) {
    refuse("axis", axis,
           fmt::format("the grid has {}; take one of these", fmt::join(axes(), ", ")));
  }
  return static_cast<std::size_t>(at - axes_.begin());
}

int NodeGrid::size(std::string_view axis) const { return axes_[index_of(axis)].size; }

int NodeGrid::coordinate(std::string_view axis, Rank rank) const {
  return coordinate(axes_[index_of(axis)], rank);
}

Group NodeGrid::group(std::span<const std::string_view> axes, Rank rank) const {
  check(rank >= 0 && rank < nodes_, "a rank is that of a node");
  std::uint32_t number = 0;
  for (const std::string_view axis : axes) {
    const std::uint32_t bit = 1U << index_of(axis);
    if ((number & bit) != 0) {
      refuse("axis", axis, "it stands twice; name each axis once");
    }
    number |= bit;
  }
  if (number == 0) {
    throw Error("axis", "a group goes along one axis of the grid at least; name one");
  }
  Group group{.number = number, .ranks = {}, .position = 0};
  for (Rank other = 0; other < nodes_; ++other) {
    bool member = true;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const bool free = ((number >> i) & 1U) != 0;
      member = member && (free || coordinate(axes_[i], other) == coordinate(axes_[i], rank));
    }
    if (member) {
      group.position = other == rank ? group.size() : group.position;
      group.ranks.push_back(other);
    }
  }
  return group;
}

Group NodeGrid::group(std::string_view axis, Rank rank) const {
  return group(std::span<const std::string_view>(&axis, 1), rank);
}

Group NodeGrid::all(Rank rank) const { return group(axes(), rank); }

std::string NodeGrid::text() const {
  std::string text;
  for (const Axis& axis : axes_) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
  }
  return text;
}

}  // namespace sotto

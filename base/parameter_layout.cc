#include <sotto/base/parameter_layout.h>

#include <optional>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

/// The product of `shape`, or nothing above `limit`.
std::optional<std::size_t> volume(const std::vector<std::size_t>& shape, std::size_t limit) {
  std::size_t size = 1;
  for (const std::size_t extent : shape) {
    if (extent != 0 && size > limit / extent) {
      return std::nullopt;
    }
    size *= extent;
  }
  return size;
}

}  // namespace

std::size_t append_block(ParameterLayout& layout, std::string name,
                         std::vector<std::size_t> shape) {
  const std::size_t offset = dimension_of(layout);
  const auto size = volume(shape, kMostDimension - offset);
  if (!size) {
    throw Error("model",
                fmt::format("'{}' would bring it above {} parameters; choose smaller layers", name,
                            kMostDimension));
  }
  layout.push_back({std::move(name), std::move(shape), offset, *size});
  return offset;
}

ParameterLayout one_tensor(std::size_t dimension) { return {{"x", {dimension}, 0, dimension}}; }

ParameterLayout complete_layout(ParameterLayout layout, std::size_t dimension) {
  if (layout.empty()) {
    return one_tensor(dimension);
  }
  std::size_t end = 0;
  for (const ParameterBlock& block : layout) {
    if (volume(block.shape, dimension) != block.size) {
      refuse("layout", block.name,
             fmt::format("its {} floats are not the product of its shape, or more than the {} "
                         "parameters",
                         block.size, dimension));
    }
    if (block.offset != end) {
      refuse(
          "layout", block.name,
          fmt::format("it starts at {} where the tensor before it ends at {}", block.offset, end));
    }
    end += block.size;
  }
  if (end != dimension) {
    refuse("layout", fmt::format("{} tensors with {} floats", layout.size(), end),
           fmt::format("there are {} parameters", dimension));
  }
  return layout;
}

std::string layout_text(const ParameterLayout& layout) {
  std::string text;
  for (const ParameterBlock& block : layout) {
    text += block.name;
    for (const std::size_t extent : block.shape) {
      text += fmt::format(" {}", extent);
    }
    text += '\n';
  }
  return text;
}

}  // namespace sotto

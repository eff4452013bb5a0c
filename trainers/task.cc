#include <sotto/trainers/task.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {

std::size_t append_block(ParameterLayout& layout, std::string name,
                         std::vector<std::size_t> shape) {
  const std::size_t offset = layout.empty() ? 0 : layout.back().offset + layout.back().size;
  std::size_t size = 1;
  for (const std::size_t extent : shape) {
    if (extent != 0 && size > (kMaxDimension - offset) / extent) {
      throw Error(
          fmt::format("model: '{}' would bring it above {} parameters; choose smaller layers", name,
                      kMaxDimension));
    }
    size *= extent;
  }
  layout.push_back({std::move(name), std::move(shape), offset, size});
  return offset;
}

}  // namespace sotto

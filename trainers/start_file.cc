#include <sotto/trainers/start_file.h>

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/trainers/durable_file.h>
#include <sotto/trainers/parameter_file.h>

namespace sotto {

std::vector<float> read_start(const std::string& path, const ParameterLayout& layout) {
  if (!path.ends_with(kTensorFile)) {
    return read_parameter_row(path, dimension_of(layout));
  }
  constexpr std::size_t kRoomForHeader = std::size_t{32} << 20;
  const auto bytes = read_file(path, kMaxDimension * sizeof(float) + kRoomForHeader);
  if (!bytes.ok()) {
    throw Error(bytes.status().message());
  }
  auto model = decode_model_file(*bytes, layout);
  if (!model.ok()) {
    throw Error(fmt::format("{}: {}", path, model.status().message()));
  }
  return std::move(*model);
}

std::string start_file(const std::string& path, const ParameterLayout& layout,
                       std::span<const float> parameters, const ModelNotes& notes) {
  if (!path.ends_with(kTensorFile)) {
    return parameter_row(parameters);
  }
  const auto bytes = encode_model_file(layout, parameters, notes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace sotto

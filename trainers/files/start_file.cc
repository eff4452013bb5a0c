#include <sotto/trainers/files/start_file.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/durable_file.h>
#include <sotto/base/error.h>
#include <sotto/trainers/files/parameter_file.h>
#include <sotto/trainers/files/saved_model.h>

namespace sotto {

namespace {

Start read_checkpoints(const std::string& folder, const ParameterLayout& layout) {
  auto saved = read_mean_model(folder, std::nullopt);
  if (!saved.ok()) {
    throw Error(saved.status().message());
  }
  if (setting_in(saved->agreement, "layout") != layout_digest(layout)) {
    throw Error(fmt::format("{}: its checkpoints are of another model", folder));
  }
  return {std::move(saved->parameters),
          fmt::format("the run starts from the mean of {} after round {} in {}: what their "
                      "compressors and step rules remembered, their clocks and their privacy "
                      "budget stay behind, and rounds count from 0",
                      averaged_text(*saved, "model"), saved->round, folder)};
}

}  // namespace

Start read_start(const std::string& path, const ParameterLayout& layout) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    return read_checkpoints(path, layout);
  }
  if (!path.ends_with(kTensorFile)) {
    return {read_parameter_row(path, dimension_of(layout)), {}};
  }
  constexpr std::size_t kRoomForHeader = std::size_t{32} << 20;
  const auto bytes = read_file(path, kMostDimension * sizeof(float) + kRoomForHeader);
  if (!bytes.ok()) {
    throw Error(bytes.status().message());
  }
  auto model = decode_model_file(*bytes, layout);
  if (!model.ok()) {
    throw Error(fmt::format("{}: {}", path, model.status().message()));
  }
  return {std::move(*model), {}};
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

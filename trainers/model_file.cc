#include <sotto/trainers/model_file.h>

#include <bit>
#include <cstdint>

#include <nlohmann/json.hpp>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/json_text.h>

namespace sotto {
namespace {

/// Where the floats begin.
constexpr std::size_t kAlignment = 8;

}  // namespace

std::vector<std::byte> encode_model_file(const ParameterLayout& layout,
                                         std::span<const float> parameters,
                                         const ModelNotes& notes) {
  static_assert(std::endian::native == std::endian::little);
  check(parameters.size() == dimension_of(layout), "a model file's layout");
  nlohmann::ordered_json header = {{"__metadata__", notes}};
  for (const ParameterBlock& block : layout) {
    const std::size_t begin = block.offset * sizeof(float);
    header[block.name] = {{"dtype", "F32"},
                          {"shape", block.shape},
                          {"data_offsets", {begin, begin + block.size * sizeof(float)}}};
  }
  std::string text = json_text(header);
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  ByteBuffer out;
  out.write(static_cast<std::uint64_t>(text.size()));
  out.write_span<char>(text);
  out.write_span(parameters);
  return std::move(out).take();
}

}  // namespace sotto

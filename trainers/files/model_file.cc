#include <sotto/trainers/files/model_file.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/json_text.h>
#include <sotto/kernels/vector.h>

namespace sotto {
namespace {

/// Where the floats begin.
constexpr std::size_t kAlignment = 8;
/// Bytes of a header: far more than the names of a model's tensors take.
constexpr std::uint64_t kMaxHeader = 16 << 20;
/// The format needs 3: the header, a tensor, and its shape.
constexpr std::size_t kMaxHeaderDepth = 8;

using HeaderJson = nlohmann::json;

Status malformed(const std::string& message) { return {Fault::malformed, message}; }

std::string shape_text(std::span<const std::size_t> shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

/// One tensor as the header has it, checked against the data behind.
struct Tensor {
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;
};

/// Non-negative integers, at most `most` of them; none where it is anything else.
std::optional<std::vector<std::size_t>> numbers_in(const HeaderJson& json, std::size_t most) {
  if (!json.is_array() || json.size() > most) {
    return std::nullopt;
  }
  std::vector<std::size_t> numbers;
  for (const HeaderJson& number : json) {
    if (!number.is_number_unsigned()) {
      return std::nullopt;
    }
    numbers.push_back(number.get<std::size_t>());
  }
  return numbers;
}

Result<Tensor> read_tensor(const std::string& name, const HeaderJson& entry,
                           std::span<const std::byte> data) {
  constexpr std::size_t kMostDimensions = 16;
  const std::string where = fmt::format("tensor '{}'", excerpt(name));
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets")) {
    return malformed(where + ": it lacks its dtype, shape or data_offsets");
  }
  const auto* const dtype = entry["dtype"].get_ptr<const std::string*>();
  if (dtype == nullptr) {
    return malformed(where + ": its dtype is no text");
  }
  if (*dtype != "F32") {
    return malformed(
        fmt::format("{}: 32-bit floats (F32) are needed, and it has '{}'", where, excerpt(*dtype)));
  }
  auto shape = numbers_in(entry["shape"], kMostDimensions);
  const auto offsets = numbers_in(entry["data_offsets"], 2);
  if (!shape || !offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1] ||
      (*offsets)[1] > data.size()) {
    return malformed(where + ": its shape or its place lies outside of the file");
  }
  std::size_t elements = 1;
  for (const std::size_t length : *shape) {
    if (length != 0 && elements > kMaxDimension / length) {
      return malformed(where + ": it is too large");
    }
    elements *= length;
  }
  const auto bytes = data.subspan((*offsets)[0], (*offsets)[1] - (*offsets)[0]);
  if (bytes.size() != elements * sizeof(float)) {
    return malformed(fmt::format("{}: its shape {} does not fit its {} bytes", where,
                                 shape_text(*shape), bytes.size()));
  }
  return Tensor{std::move(*shape), bytes};
}

using Tensors = std::map<std::string, Tensor>;

Result<Tensors> read_tensors(std::span<const std::byte> file) {
  ByteReader in(file);
  const auto length = in.read<std::uint64_t>();
  if (in.failed() || length > kMaxHeader || length > in.remaining()) {
    return malformed("it is no safetensors file, or it ends too early");
  }
  const auto header = in.take(static_cast<std::size_t>(length));
  const auto data = in.take(in.remaining());
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  HeaderJson json;
  try {
    json = parse_json<HeaderJson>(text, kMaxHeaderDepth);
  } catch (const Error& error) {
    return malformed(fmt::format("its header: {}", error.what()));
  }
  if (!json.is_object()) {
    return malformed("the header is no JSON object");
  }
  Tensors tensors;
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") {
      continue;
    }
    auto tensor = read_tensor(name, entry, data);
    if (!tensor.ok()) {
      return tensor.status();
    }
    tensors.emplace(name, std::move(*tensor));
  }
  return tensors;
}

/// Whether the file has one vector of all parameters and nothing more.
bool is_flat(const Tensors& tensors, std::size_t dimension) {
  return tensors.size() == 1 && tensors.begin()->second.shape == std::vector{dimension};
}

/// Why the tensors are not those of the layout; OK when they are.
Status compare(const Tensors& tensors, const ParameterLayout& layout) {
  for (const ParameterBlock& block : layout) {
    const auto found = tensors.find(block.name);
    if (found == tensors.end()) {
      return malformed(fmt::format("the model has a tensor '{}' of shape {}, the file has none",
                                   excerpt(block.name), shape_text(block.shape)));
    }
    if (found->second.shape != block.shape) {
      return malformed(fmt::format("tensor '{}': the model's has the shape {}, the file's {}",
                                   excerpt(block.name), shape_text(block.shape),
                                   shape_text(found->second.shape)));
    }
  }
  for (const auto& [name, tensor] : tensors) {
    if (std::ranges::find(layout, name, &ParameterBlock::name) == layout.end()) {
      return malformed(fmt::format("the file has a tensor '{}' of shape {}, the model has none",
                                   excerpt(name), shape_text(tensor.shape)));
    }
  }
  return {};
}

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

Result<std::vector<float>> decode_model_file(std::span<const std::byte> bytes,
                                             const ParameterLayout& layout) {
  const auto tensors = read_tensors(bytes);
  if (!tensors.ok()) {
    return tensors.status();
  }
  std::vector<float> parameters(dimension_of(layout));
  const auto fill = [](std::span<float> part, const Tensor& tensor) {
    std::memcpy(part.data(), tensor.bytes.data(), tensor.bytes.size());
  };
  if (is_flat(*tensors, parameters.size())) {
    fill(parameters, tensors->begin()->second);
  } else if (Status differs = compare(*tensors, layout); !differs.ok()) {
    return differs;
  } else {
    for (const ParameterBlock& block : layout) {
      fill(block.of(std::span<float>(parameters)), tensors->at(block.name));
    }
  }
  if (const auto bad = host_ops().count_non_finite(parameters); bad.count > 0) {
    return malformed(fmt::format("{} of its numbers are NaN or infinite", bad.count));
  }
  return parameters;
}

}  // namespace sotto

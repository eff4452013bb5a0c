#include <sotto/trainers/files/model_file.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
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
#include <sotto/base/names.h>
#include <sotto/compress/per_tensor.h>
#include <sotto/compress/registry.h>
#include <sotto/kernels/vector.h>

namespace sotto {
namespace {

/// The offset at which the floats begin.
constexpr std::size_t kAlignment = 8;
/// Bytes of a header: far more than the names of a model's tensors take.
constexpr std::uint64_t kMostHeader = 16 << 20;
/// The format needs 3: the header, a tensor, and its shape.
constexpr std::size_t kMostHeaderDepth = 8;

using HeaderJson = nlohmann::json;

Status malformed(const std::string& message) { return {Fault::malformed, message}; }

std::string shape_text(std::span<const std::size_t> shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

/// Under "__metadata__": the encodings of tensors.
constexpr const char* kEncodings = "sotto.encoding";

/// One tensor as the header has it, checked against the data behind.
struct Tensor {
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;
  std::string spec = {};  ///< specification of its encoding; empty: 32-bit floats
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

constexpr std::size_t kMostDimensions = 16;
/// Elements that a byte of an encoding can hold.
constexpr std::size_t kMostPerByte = 8;

/// Elements of a tensor of this shape; none: more than a model has.
std::optional<std::size_t> elements_of(std::span<const std::size_t> shape) {
  std::size_t elements = 1;
  for (const std::size_t length : shape) {
    if (length != 0 && elements > kMostDimension / length) {
      return std::nullopt;
    }
    elements *= length;
  }
  return elements;
}

/// How the header says that a tensor is encoded.
struct Encoding {
  std::string spec;
  std::vector<std::size_t> shape;
};
using Encodings = std::map<std::string, Encoding>;

Result<Encodings> read_encodings(const HeaderJson& header) {
  Encodings encodings;
  const auto notes = header.find("__metadata__");
  if (notes == header.end() || !notes->is_object() || !notes->contains(kEncodings)) {
    return encodings;
  }
  const auto* const text = (*notes)[kEncodings].get_ptr<const std::string*>();
  HeaderJson json;
  try {
    json = text == nullptr ? HeaderJson() : parse_json<HeaderJson>(*text, kMostHeaderDepth);
  } catch (const Error& error) {
    return malformed(fmt::format("{}: {}", kEncodings, error.what()));
  }
  if (!json.is_object()) {
    return malformed(fmt::format("{} is no JSON object", kEncodings));
  }
  for (const auto& [name, entry] : json.items()) {
    const auto* const spec = entry.is_object() && entry.contains("spec")
                                 ? entry["spec"].get_ptr<const std::string*>()
                                 : nullptr;
    auto shape = spec != nullptr && entry.contains("shape")
                     ? numbers_in(entry["shape"], kMostDimensions)
                     : std::nullopt;
    if (!shape || !encodes_files(*spec)) {
      return malformed(fmt::format("tensor '{}': it is encoded in no known way", excerpt(name)));
    }
    encodings[name] = {*spec, std::move(*shape)};
  }
  return encodings;
}

Result<Tensor> read_tensor(const std::string& name, const HeaderJson& entry,
                           const Encodings& encodings, std::span<const std::byte> data) {
  const std::string where = fmt::format("tensor '{}'", excerpt(name));
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets")) {
    return malformed(where + ": it lacks its dtype, shape or data_offsets");
  }
  const auto* const dtype = entry["dtype"].get_ptr<const std::string*>();
  if (dtype == nullptr) {
    return malformed(where + ": its dtype is no text");
  }
  const bool encoded = *dtype == "U8" && encodings.contains(name);
  if (*dtype != "F32" && !encoded) {
    return malformed(
        fmt::format("{}: 32-bit floats (F32) are needed, and it has '{}'", where, excerpt(*dtype)));
  }
  auto shape = numbers_in(entry["shape"], kMostDimensions);
  const auto offsets = numbers_in(entry["data_offsets"], 2);
  if (!shape || !offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1] ||
      (*offsets)[1] > data.size()) {
    return malformed(where + ": its shape or its place lies outside of the file");
  }
  const auto elements = elements_of(*shape);
  if (!elements) {
    return malformed(where + ": it is too large");
  }
  const auto bytes = data.subspan((*offsets)[0], (*offsets)[1] - (*offsets)[0]);
  if (bytes.size() != *elements * (encoded ? 1 : sizeof(float))) {
    return malformed(fmt::format("{}: its shape {} does not fit its {} bytes", where,
                                 shape_text(*shape), bytes.size()));
  }
  if (encoded && elements_of(encodings.at(name).shape).value_or(kMostDimension) >
                     kMostPerByte * bytes.size()) {
    return malformed(fmt::format("{}: its shape {} does not fit its {} bytes", where,
                                 shape_text(encodings.at(name).shape), bytes.size()));
  }
  return encoded ? Tensor{encodings.at(name).shape, bytes, encodings.at(name).spec}
                 : Tensor{std::move(*shape), bytes};
}

using Tensors = std::map<std::string, Tensor>;

Result<Tensors> read_tensors(std::span<const std::byte> file) {
  ByteReader in(file);
  const auto length = in.read<std::uint64_t>();
  if (in.failed() || length > kMostHeader || length > in.remaining()) {
    return malformed("it is no safetensors file, or it ends too early");
  }
  const auto header = in.take(static_cast<std::size_t>(length));
  const auto data = in.take(in.remaining());
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  HeaderJson json;
  try {
    json = parse_json<HeaderJson>(text, kMostHeaderDepth);
  } catch (const Error& error) {
    return malformed(fmt::format("its header: {}", error.what()));
  }
  if (!json.is_object()) {
    return malformed("the header is no JSON object");
  }
  const auto encodings = read_encodings(json);
  if (!encodings.ok()) {
    return encodings.status();
  }
  Tensors tensors;
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") {
      continue;
    }
    auto tensor = read_tensor(name, entry, *encodings, data);
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

/// Fills in the values of a tensor with values.size() elements.
Status fill(std::span<float> values, const Tensor& tensor) {
  if (tensor.spec.empty()) {
    std::ranges::copy(tensor.bytes, std::as_writable_bytes(values).begin());
    return {};
  }
  try {
    return make_compressor(tensor.spec)->decode_add(tensor.bytes, 1, values);
  } catch (const Error& error) {
    return malformed(error.what());
  }
}

/// Fault::malformed where a model of these numbers could not be trained.
Status require_finite(std::span<const float> parameters) {
  const auto bad = host_ops().count_non_finite(parameters);
  return bad.count == 0
             ? Status()
             : malformed(fmt::format("{} of its numbers are NaN or infinite", bad.count));
}

}  // namespace

bool encodes_files(std::string_view spec) {
  constexpr auto kFamilies = std::to_array<std::string_view>({"quant", "outlier", "fp16", "bf16"});
  return !is_per_tensor(spec) && std::ranges::find(kFamilies, family_name(spec)) != kFamilies.end();
}

std::vector<std::byte> encode_tensor(const std::string& spec, std::span<const float> values) {
  check(encodes_files(spec), "a file's tensors are encoded by few families");
  const auto compressor = make_compressor(spec, ContractKind::contraction);
  std::vector<std::byte> bytes(compressor->max_bytes(values.size()));
  bytes.resize(compressor->encode(values, {}, bytes));
  return bytes;
}

std::vector<std::byte> encode_model_file(const ParameterLayout& layout,
                                         std::span<const float> parameters, const ModelNotes& notes,
                                         const TensorEncodings& encodings) {
  static_assert(std::endian::native == std::endian::little);
  check(parameters.size() == dimension_of(layout), "a model file's layout");
  ByteBuffer data;
  nlohmann::ordered_json header = {{"__metadata__", notes}};
  nlohmann::ordered_json encoded = nlohmann::ordered_json::object();
  const auto add = [&](const ParameterBlock& block, std::string_view type,
                       std::span<const std::byte> bytes, const auto& shape) {
    const std::size_t begin = data.bytes().size();
    data.append(bytes);
    header[block.name] = {
        {"dtype", type}, {"shape", shape}, {"data_offsets", {begin, begin + bytes.size()}}};
  };
  for (const ParameterBlock& block : layout) {  // first, so that all floats are aligned
    if (!encodings.contains(block.name)) {
      add(block, "F32", std::as_bytes(block.of(parameters)), block.shape);
    }
  }
  for (const ParameterBlock& block : layout) {
    if (const auto found = encodings.find(block.name); found != encodings.end()) {
      const std::vector<std::byte> bytes = encode_tensor(found->second, block.of(parameters));
      add(block, "U8", bytes, std::vector{bytes.size()});
      encoded[block.name] = {{"spec", found->second}, {"shape", block.shape}};
    }
  }
  if (!encoded.empty()) {
    header["__metadata__"][kEncodings] = json_text(encoded);
  }
  std::string text = json_text(header);
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  ByteBuffer out;
  out.write(static_cast<std::uint64_t>(text.size()));
  out.write_span<char>(text);
  out.append(data.bytes());
  return std::move(out).take();
}

Result<ModelTensors> read_model_tensors(std::span<const std::byte> bytes) {
  const auto tensors = read_tensors(bytes);
  if (!tensors.ok()) {
    return tensors.status();
  }
  std::vector<const Tensors::value_type*> by_place;
  by_place.reserve(tensors->size());
  for (const auto& tensor : *tensors) {
    by_place.push_back(&tensor);
  }
  std::ranges::stable_sort(by_place, {}, [](const auto* one) { return one->second.bytes.data(); });
  ModelTensors model;
  const std::byte* end = nullptr;
  try {
    for (const auto* one : by_place) {
      const auto& [name, tensor] = *one;
      if (tensor.bytes.empty()) {
        return malformed(fmt::format("tensor '{}' is empty", excerpt(name)));
      }
      if (end != nullptr && tensor.bytes.data() < end) {
        return malformed(fmt::format("tensor '{}' lies over another one", excerpt(name)));
      }
      end = tensor.bytes.data() + tensor.bytes.size();
      const std::size_t offset = append_block(model.layout, name, tensor.shape);
      model.parameters.resize(dimension_of(model.layout));
      if (Status filled = fill(std::span(model.parameters).subspan(offset), tensor); !filled.ok()) {
        return filled.with_context(fmt::format("tensor '{}'", excerpt(name)));
      }
    }
  } catch (const Error& error) {
    return malformed(error.what());
  }
  if (Status finite = require_finite(model.parameters); !finite.ok()) {
    return finite;
  }
  return model;
}

Result<std::vector<float>> decode_model_file(std::span<const std::byte> bytes,
                                             const ParameterLayout& layout) {
  const auto tensors = read_tensors(bytes);
  if (!tensors.ok()) {
    return tensors.status();
  }
  std::vector<float> parameters(dimension_of(layout));
  Status filled;
  if (is_flat(*tensors, parameters.size())) {
    filled = fill(parameters, tensors->begin()->second);
  } else if (Status differs = compare(*tensors, layout); !differs.ok()) {
    return differs;
  } else {
    for (const ParameterBlock& block : layout) {
      filled = fill(block.of(std::span<float>(parameters)), tensors->at(block.name));
      if (!filled.ok()) {
        filled = filled.with_context(fmt::format("tensor '{}'", excerpt(block.name)));
        break;
      }
    }
  }
  if (!filled.ok()) {
    return filled;
  }
  if (Status finite = require_finite(parameters); !finite.ok()) {
    return finite;
  }
  return parameters;
}

}  // namespace sotto

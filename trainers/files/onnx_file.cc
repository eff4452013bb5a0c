#include <sotto/trainers/files/onnx_file.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/text.h>

namespace sotto {
namespace {

constexpr std::int64_t kIrVersion = 8;
constexpr std::int64_t kOperatorSet = 13;
/// Parameters of more bytes do not fit: a protocol buffer has 2 GiB at most.
constexpr std::size_t kMostBytes = (std::size_t{2} << 30) - (std::size_t{64} << 20);

/// Types of elements (TensorProto.DataType) and of attributes (AttributeProto.AttributeType).
enum ElementType : std::int64_t { kFloat = 1, kInt64 = 7, kDouble = 11 };
enum AttributeType : std::int64_t { kOneInt = 2, kInts = 7 };

/// A message of protocol buffers. Field numbers are those of onnx.proto3.
class Proto {
 public:
  Proto& integer(std::uint32_t field, std::int64_t value) {
    varint(field << 3U);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Proto& bytes(std::uint32_t field, std::span<const std::byte> value) {
    varint((field << 3U) | 2U);
    varint(value.size());
    out_.append(value);
    return *this;
  }
  Proto& text(std::uint32_t field, std::string_view value) {
    return bytes(field, std::as_bytes(std::span(value)));
  }
  Proto& message(std::uint32_t field, const Proto& value) {
    return bytes(field, value.out_.bytes());
  }
  std::vector<std::byte> take() && { return std::move(out_).take(); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) {
      out_.write(static_cast<std::uint8_t>(value | 0x80U));
    }
    out_.write(static_cast<std::uint8_t>(value));
  }

  ByteBuffer out_;
};

struct OnnxAttribute {
  std::string_view name;
  std::vector<std::int64_t> values;
  bool list = false;
};

Proto attribute_proto(const OnnxAttribute& attribute) {
  Proto proto;
  proto.text(1, attribute.name);
  for (const std::int64_t value : attribute.values) {
    proto.integer(attribute.list ? 8 : 3, value);
  }
  proto.integer(20, attribute.list ? kInts : kOneInt);
  return proto;
}

/// A value of rows × columns; the number of rows is left open.
Proto value_info(std::string_view name, ElementType type, std::size_t columns) {
  Proto rows;
  rows.text(2, "rows");
  Proto width;
  width.integer(1, static_cast<std::int64_t>(columns));
  Proto shape;
  shape.message(1, rows).message(1, width);
  Proto tensor;
  tensor.integer(1, type).message(2, shape);
  Proto types;
  types.message(1, tensor);
  Proto info;
  info.text(1, name).message(2, types);
  return info;
}

/// A graph that grows by one operator at a time, each on the value of the one before.
class OnnxGraph {
 public:
  explicit OnnxGraph(std::string input) : value_(std::move(input)) {}

  /// value ← op(value, more…)
  void apply(std::string_view op, std::initializer_list<std::string> more = {},
             std::initializer_list<OnnxAttribute> attributes = {}, std::string name = {}) {
    if (name.empty()) {
      name = fmt::format("value{}", ++values_);
    }
    Proto node;
    node.text(1, value_);
    for (const std::string& input : more) {
      node.text(1, input);
    }
    node.text(2, name).text(3, fmt::format("{}_{}", op, name)).text(4, op);
    for (const OnnxAttribute& attribute : attributes) {
      node.message(5, attribute_proto(attribute));
    }
    graph_.message(1, node);
    value_ = std::move(name);
  }

  /// A constant; returns its name.
  template <typename T>
  std::string constant(const std::string& name, ElementType type,
                       std::span<const std::size_t> shape, std::span<const T> values) {
    static_assert(std::endian::native == std::endian::little);
    Proto tensor;
    for (const std::size_t length : shape) {
      tensor.integer(1, static_cast<std::int64_t>(length));
    }
    tensor.integer(2, type).text(8, name).bytes(9, std::as_bytes(values));
    graph_.message(5, tensor);
    return name;
  }
  /// A row of 64-bit floats.
  std::string row(const std::string& name, const std::vector<double>& values) {
    const std::array<std::size_t, 1> shape = {values.size()};
    return constant(name, kDouble, shape, std::span<const double>(values));
  }

  /// Names the graph, and closes it with its input and its output.
  Proto close(const Proto& input, const Proto& output) && {
    graph_.text(2, "model").message(11, input).message(12, output);
    return std::move(graph_);
  }

 private:
  Proto graph_;
  std::string value_;  // the last one
  int values_ = 0;
};

bool is_cnn(const ParameterLayout& layout) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "dense.weight", "dense.bias"});
  return std::ranges::equal(layout, kNames, {}, &ParameterBlock::name);
}

bool is_mlp(const ParameterLayout& layout) {
  for (std::size_t k = 0; k < layout.size(); ++k) {
    const std::string name = fmt::format("layer{}.{}", k / 2 + 1, k % 2 == 0 ? "weight" : "bias");
    if (layout[k].name != name) {
      return false;
    }
  }
  return !layout.empty() && layout.size() % 2 == 0;
}

void add_dense(OnnxGraph& graph, const std::string& name) {
  graph.apply("Gemm", {name + ".weight", name + ".bias"}, {{"transB", {1}}});
}

void add_cnn(OnnxGraph& graph, const ParameterLayout& layout, const ImageShape& image) {
  const auto size = [](std::size_t length) { return static_cast<std::int64_t>(length); };
  const std::array<std::int64_t, 4> shape = {-1, size(image.channels), size(image.height),
                                             size(image.width)};
  const std::array<std::size_t, 1> four = {4};
  graph.apply("Reshape",
              {graph.constant("image", kInt64, four, std::span<const std::int64_t>(shape))});
  for (const std::size_t block : {0U, 2U}) {
    const std::int64_t kernel = size(layout[block].shape[2]);
    const std::int64_t pad = kernel / 2;
    graph.apply("Conv", {layout[block].name, layout[block + 1].name},
                {{"kernel_shape", {kernel, kernel}, true}, {"pads", {pad, pad, pad, pad}, true}});
    graph.apply("Relu");
    graph.apply("MaxPool", {}, {{"kernel_shape", {2, 2}, true}, {"strides", {2, 2}, true}});
  }
  graph.apply("Flatten", {}, {{"axis", {1}}});
  add_dense(graph, "dense");
}

void add_model(OnnxGraph& graph, const ParameterLayout& layout, const ModelUnits& units) {
  if (is_cnn(layout)) {
    add_cnn(graph, layout, *units.image);
    return;
  }
  for (std::size_t layer = 1; layer <= layout.size() / 2; ++layer) {
    if (layer > 1) {
      graph.apply("Relu");
    }
    add_dense(graph, fmt::format("layer{}", layer));
  }
}

/// Adds the scaling from units of the data to the model's.
void add_scaling(OnnxGraph& graph, const std::vector<FeatureScaling>& scaling) {
  std::vector<double> means;
  std::vector<double> factors;
  for (const FeatureScaling& one : scaling) {
    means.push_back(one.mean);
    factors.push_back(one.factor);
  }
  graph.apply("Sub", {graph.row("mean", means)});
  graph.apply("Mul", {graph.row("factor", factors)});
  graph.apply("Cast", {}, {{"to", {kFloat}}});
}

/// Adds the scaling from the model's units to those of the data, under the output's name.
void add_targets(OnnxGraph& graph, const std::vector<FeatureScaling>& scaling) {
  if (scaling.empty()) {
    graph.apply("Identity", {}, {}, "targets");
    return;
  }
  std::vector<double> means;
  std::vector<double> deviations;
  for (const FeatureScaling& one : scaling) {
    means.push_back(one.mean);
    deviations.push_back(1 / one.factor);
  }
  graph.apply("Cast", {}, {{"to", {kDouble}}});
  graph.apply("Mul", {graph.row("target_deviation", deviations)});
  graph.apply("Add", {graph.row("target_mean", means)}, {}, "targets");
}

Proto with_metadata(Proto model, const ModelNotes& notes) {
  // The graph takes care of these.
  constexpr auto kInside =
      std::to_array<std::string_view>({"mean", "deviation", "target_mean", "target_deviation"});
  for (const auto& [key, value] : notes) {
    if (std::ranges::find(kInside, key) == kInside.end()) {
      Proto entry;
      entry.text(1, printable(key)).text(2, printable(value));
      model.message(14, entry);
    }
  }
  return model;
}

}  // namespace

ModelUnits units_of(const Dataset& data) {
  return {.features = data.features(),
          .scaling = data.scaling(),
          .target_scaling = data.target_scaling(),
          .image = data.image(),
          .regression = data.regression()};
}

void check_onnx(const ParameterLayout& layout, const ModelUnits& units) {
  if (!is_mlp(layout) && !(is_cnn(layout) && units.image)) {
    throw Error(
        "softmax, linear, mlp and cnn are written as ONNX, and this is another model; "
        "take a file that ends in .safetensors");
  }
  if (dimension_of(layout) > kMostBytes / sizeof(float)) {
    throw Error(
        fmt::format("its {} parameters are more than the 2 GiB of an ONNX file; take a file that "
                    "ends in .safetensors",
                    dimension_of(layout)));
  }
}

std::vector<std::byte> encode_onnx_file(const ParameterLayout& layout,
                                        std::span<const float> parameters, const ModelUnits& units,
                                        const ModelNotes& notes) {
  check(parameters.size() == dimension_of(layout), "an ONNX file's layout");
  check_onnx(layout, units);
  OnnxGraph graph("features");
  for (const ParameterBlock& block : layout) {
    graph.constant(block.name, kFloat, block.shape, block.of(parameters));
  }
  if (!units.scaling.empty()) {
    add_scaling(graph, units.scaling);
  }
  add_model(graph, layout, units);
  const bool scaled_back = units.regression && !units.target_scaling.empty();
  if (units.regression) {
    add_targets(graph, units.target_scaling);
  } else {
    graph.apply("Softmax", {}, {{"axis", {1}}}, "probabilities");
  }
  const std::size_t outputs = layout.back().size;  // a bias each
  Proto operators;
  operators.text(1, "").integer(2, kOperatorSet);
  Proto model;
  model.integer(1, kIrVersion).text(2, "sotto");
  const auto version = notes.find("sotto");
  if (version != notes.end()) {
    model.text(3, version->second);
  }
  model.message(
      7, std::move(graph).close(
             value_info("features", units.scaling.empty() ? kFloat : kDouble, units.features),
             value_info(units.regression ? "targets" : "probabilities",
                        scaled_back ? kDouble : kFloat, outputs)));
  model.message(8, operators);
  return with_metadata(std::move(model), notes).take();
}

}  // namespace sotto

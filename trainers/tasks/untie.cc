#include <sotto/trainers/tasks/untie.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/number.h>

namespace sotto {
namespace {

/// A tensor of a layer: "h.3.mlp.c_fc.weight" is mlp.c_fc.weight of layer 3.
struct LayerTensor {
  std::size_t layer;
  std::string_view part;
};

/// None for a tensor of no layer.
std::optional<LayerTensor> layer_tensor(std::string_view name) {
  constexpr std::string_view kLayers = "h.";
  if (!name.starts_with(kLayers)) {
    return std::nullopt;
  }
  name.remove_prefix(kLayers.size());
  const auto layer = take_number<std::size_t>(name);
  if (!layer || !name.starts_with('.')) {
    return std::nullopt;
  }
  return LayerTensor{*layer, name.substr(1)};
}

/// Blocks by their part, in the layout's order.
using Layer = std::vector<std::pair<std::string_view, const ParameterBlock*>>;

const ParameterBlock* find_part(const Layer& layer, std::string_view part) {
  const auto found =
      std::ranges::find(layer, part, &std::pair<std::string_view, const ParameterBlock*>::first);
  return found == layer.end() ? nullptr : found->second;
}

/// The layers, in order. Throws Error where there are none, or one is missing.
std::vector<Layer> layers_of(const ParameterLayout& layout) {
  std::map<std::size_t, Layer> found;
  for (const ParameterBlock& block : layout) {
    if (const auto tensor = layer_tensor(block.name)) {
      found[tensor->layer].emplace_back(tensor->part, &block);
    }
  }
  if (found.empty()) {
    throw Error("it is no transformer: it has no tensors of layers, as h.0.attn.c_attn.weight");
  }
  std::vector<Layer> layers;
  for (auto& [number, layer] : found) {
    if (number != layers.size()) {
      throw Error(
          fmt::format("it has tensors of layer {} and none of layer {}", number, layers.size()));
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

class Untying {
 public:
  explicit Untying(std::span<const float> parameters) : from_(parameters) {}

  /// Appends a tensor under this name.
  void append(std::string name, const ParameterBlock& block) {
    append_block(untied_.layout, std::move(name), block.shape);
    std::ranges::copy(block.of(from_), std::back_inserter(untied_.parameters));
  }
  /// Appends all tensors of all layers, each as its first one has them.
  void append_layers(std::span<const Layer> layers) {
    Layer latest = layers.front();
    for (const Layer& layer : layers) {
      bool own = false;
      for (auto& [part, block] : latest) {
        const ParameterBlock* const found = find_part(layer, part);
        own = own || (found != nullptr && !part.starts_with("ln_"));
        block = found == nullptr ? block : found;
        append(fmt::format("h.{}.{}", untied_.layers, part), *block);
      }
      for (const auto& [part, block] : layer) {
        if (find_part(latest, part) == nullptr) {
          throw Error(fmt::format("it has {}, and layer 0 has no such tensor", block->name));
        }
      }
      untied_.sets += own ? 1U : 0U;
      ++untied_.layers;
    }
  }
  UntiedModel take() && { return std::move(untied_); }

 private:
  std::span<const float> from_;
  UntiedModel untied_;
};

}  // namespace

UntiedModel untie_layers(const ParameterLayout& layout, std::span<const float> parameters) {
  check(parameters.size() == dimension_of(layout), "parameters of the layout");
  const auto layers = layers_of(layout);
  Untying untying(parameters);
  bool done = false;
  for (const ParameterBlock& block : layout) {
    if (!layer_tensor(block.name)) {
      untying.append(block.name, block);
    } else if (!std::exchange(done, true)) {
      untying.append_layers(layers);
    }
  }
  UntiedModel untied = std::move(untying).take();
  if (untied.layout.size() == layout.size()) {
    throw Error(fmt::format("none of its {} layers {} tied to another: each has all of its tensors",
                            untied.layers, untied.layers == 1 ? "could be" : "is"));
  }
  return untied;
}

}  // namespace sotto

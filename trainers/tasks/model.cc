#include <sotto/trainers/tasks/model.h>

#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/number.h>

#include "models/cnn.h"
#include "models/mlp.h"
#include "models/transformer.h"

namespace sotto {
namespace {

constexpr std::size_t kMostWidth = 1 << 16;
constexpr std::size_t kMostLayers = 16;
constexpr std::size_t kMostExperts = 256;

constexpr std::array<ModelInfo, 5> kModels = {{
    {"softmax", "softmax", "multinomial logistic regression: one linear layer, a convex loss",
     "softmax"},
    {"mlp", "mlp:H1[,H2…]", "fully connected layers of H1, H2, … units with ReLU between them",
     "mlp:128,64"},
    {"cnn", "cnn[:C1,C2]",
     "two convolutions to C1 = 8 and C2 = 16 channels, each with ReLU and 2×2 maximum; for images",
     "cnn:8,16"},
    {"transformer", "transformer[:LAYERS,WIDTH,HEADS[,share=N|,experts=E[,balance=L]]]",
     "causal self-attention, 2 layers of width 64 with 4 heads by default, each N layers with one "
     "set of weights, or E experts in each; for text, at every position",
     "transformer:2,64,4"},
    {"linear", "linear",
     "one linear layer: of a regression least squares, of classes softmax; a convex loss",
     "linear"},
}};

/// The sizes in "H1,H2,…", 1 … kMostWidth each; empty if that is not what `list` is.
std::vector<std::size_t> parse_sizes(std::string_view list) {
  std::vector<std::size_t> widths;
  for (;;) {
    const std::size_t comma = list.find(',');
    const auto width = parse_number<std::size_t>(list.substr(0, comma), 1, kMostWidth);
    if (!width || widths.size() == kMostLayers) {
      return {};
    }
    widths.push_back(*width);
    if (comma == std::string_view::npos) {
      return widths;
    }
    list.remove_prefix(comma + 1);
  }
}

std::unique_ptr<Model> make_mlp(std::string_view spec, std::string_view argument,
                                const ModelInput& input) {
  const auto widths = parse_sizes(argument);
  if (widths.empty()) {
    refuse("model", spec,
           fmt::format("expected 1 to {} layer widths from 1 to {}, as in mlp:128,64", kMostLayers,
                       kMostWidth));
  }
  return std::make_unique<Mlp>(input, widths);
}

std::unique_ptr<Model> make_cnn(std::string_view spec, std::optional<std::string_view> argument,
                                const ModelInput& input) {
  const auto channels = argument ? parse_sizes(*argument) : std::vector<std::size_t>{8, 16};
  if (channels.size() != 2) {
    refuse(
        "model", spec,
        fmt::format("expected two numbers of channels from 1 to {}, as in cnn:8,16", kMostWidth));
  }
  if (!input.image || input.image->height < 4 || input.image->width < 4) {
    refuse("model", spec,
           fmt::format("expected a task with images of at least 4 × 4; use {} or mlp",
                       input.targets > 0 ? "linear" : "softmax"));
  }
  return std::make_unique<Cnn>(*input.image, channels[0], channels[1], input.classes);
}

/// Cuts ",share=N" off `argument`; 1 where there is none. Throws Error where N does not divide the
/// number of layers that it begins with.
std::size_t take_share(std::string_view spec, std::string_view& argument) {
  constexpr std::string_view kShare = ",share=";
  const std::size_t at = argument.find(kShare);
  if (at == std::string_view::npos) {
    return 1;
  }
  const std::string_view value = argument.substr(at + kShare.size());
  argument = argument.substr(0, at);
  const auto layers =
      parse_number<std::size_t>(argument.substr(0, argument.find(',')), 1, kMostLayers);
  const auto share = parse_number<std::size_t>(value, 1, layers.value_or(kMostLayers));
  if (!share || (layers && *layers % *share != 0)) {
    refuse("model", spec,
           fmt::format("share is how many layers that follow each other have their weights in "
                       "common, 1 to {}, and divides the number of layers, as in "
                       "transformer:4,64,4,share=2",
                       layers.value_or(kMostLayers)));
  }
  return *share;
}

/// Cuts ",balance=L" off `argument`, which stands behind a number of experts; 0 where there is
/// none. Throws Error where L is no weight.
double take_balance(std::string_view spec, std::string_view& argument) {
  constexpr std::string_view kBalance = ",balance=";
  const std::size_t at = argument.find(kBalance);
  if (at == std::string_view::npos) {
    return 0;
  }
  const auto balance = parse_number<double>(argument.substr(at + kBalance.size()), 0, 1000);
  argument = argument.substr(0, at);
  if (!balance || argument.find(",experts=") == std::string_view::npos) {
    refuse("model", spec,
           "balance is the weight of the loss that spreads positions over experts, 0 to 1000, as "
           "in transformer:2,64,4,experts=8,balance=0.01");
  }
  return *balance;
}

/// Cuts ",experts=E" off `argument`; 1 where there is none. Throws Error where E is no number of
/// experts, and beside layers that share.
std::size_t take_experts(std::string_view spec, std::string_view& argument) {
  constexpr std::string_view kExperts = ",experts=";
  const std::size_t at = argument.find(kExperts);
  if (at == std::string_view::npos) {
    return 1;
  }
  const auto experts =
      parse_number<std::size_t>(argument.substr(at + kExperts.size()), 2, kMostExperts);
  argument = argument.substr(0, at);
  if (!experts || argument.find('=') != std::string_view::npos) {
    refuse("model", spec,
           fmt::format("experts is how many mlps each layer has, 2 to {}, as in "
                       "transformer:2,64,4,experts=8; layers with experts share no weights",
                       kMostExperts));
  }
  return *experts;
}

std::unique_ptr<Model> make_transformer(std::string_view spec,
                                        std::optional<std::string_view> argument,
                                        const ModelInput& input) {
  std::string_view list = argument.value_or("2,64,4");
  const double balance = take_balance(spec, list);
  const std::size_t experts = take_experts(spec, list);
  const std::size_t share = take_share(spec, list);
  const auto sizes = parse_sizes(list);
  if (sizes.size() != 3 || sizes[0] > kMostLayers || sizes[1] % sizes[2] != 0) {
    refuse(
        "model", spec,
        fmt::format("expected 1 to {} layers, a width up to {} and a number of heads that divides "
                    "it, as in transformer:2,64,4",
                    kMostLayers, kMostWidth));
  }
  if (!input.sequence) {
    refuse("model", spec,
           fmt::format("expected a task with text, as text:FILE,context=32; use {} or mlp",
                       input.targets > 0 ? "linear" : "softmax"));
  }
  return std::make_unique<Transformer>(*input.sequence, input.classes,
                                       TransformerSize{.layers = sizes[0],
                                                       .width = sizes[1],
                                                       .heads = sizes[2],
                                                       .share = share,
                                                       .experts = experts,
                                                       .balance = balance});
}

}  // namespace

std::span<const ModelInfo> models() { return kModels; }

std::unique_ptr<Model> make_model(std::string_view spec, const ModelInput& input) {
  const std::size_t colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const auto argument =
      colon == std::string_view::npos ? std::nullopt : std::optional(spec.substr(colon + 1));
  if ((name == "softmax" || name == "linear") && !argument) {
    if (name == "softmax" && input.targets > 0) {
      refuse("model", spec, "it is for classes, and the task is a regression; use linear or mlp");
    }
    return std::make_unique<Mlp>(input, std::span<const std::size_t>{});
  }
  if (name == "mlp") {
    return make_mlp(spec, argument.value_or(""), input);
  }
  if (name == "cnn") {
    return make_cnn(spec, argument, input);
  }
  if (name == "transformer") {
    return make_transformer(spec, argument, input);
  }
  refuse_unregistered("model", spec, kModels);
}

}  // namespace sotto

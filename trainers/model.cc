#include <sotto/trainers/model.h>

#include <array>
#include <charconv>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>

#include "models/cnn.h"
#include "models/mlp.h"

namespace sotto {
namespace {

constexpr std::size_t kMaxWidth = 1 << 16;
constexpr std::size_t kMaxLayers = 16;

constexpr std::array<ModelInfo, 3> kModels = {{
    {"softmax", "softmax", "multinomial logistic regression: one linear layer, a convex loss",
     "softmax"},
    {"mlp", "mlp:H1[,H2…]", "fully connected layers of H1, H2, … units with ReLU between them",
     "mlp:128,64"},
    {"cnn", "cnn[:C1,C2]",
     "two convolutions to C1 = 8 and C2 = 16 channels, each with ReLU and 2×2 maximum; for images",
     "cnn:8,16"},
}};

/// The widths in "H1,H2,…".
std::vector<std::size_t> parse_widths(std::string_view spec, std::string_view list) {
  std::vector<std::size_t> widths;
  const char* at = list.data();
  const char* const end = list.data() + list.size();
  for (;;) {
    std::size_t width = 0;
    const auto [next, error] = std::from_chars(at, end, width);
    if (error != std::errc{} || width == 0 || width > kMaxWidth || widths.size() == kMaxLayers) {
      break;
    }
    widths.push_back(width);
    if (next == end) {
      return widths;
    }
    if (*next != ',') {
      break;
    }
    at = next + 1;
  }
  refuse("model", spec,
         fmt::format("expected 1 to {} layer widths from 1 to {}, as in mlp:128,64", kMaxLayers,
                     kMaxWidth));
}

}  // namespace

std::span<const ModelInfo> models() { return kModels; }

std::unique_ptr<Model> make_model(std::string_view spec, const ModelInput& input) {
  const std::size_t colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const bool has_argument = colon != std::string_view::npos;
  const std::string_view argument = has_argument ? spec.substr(colon + 1) : std::string_view{};
  if (name == "softmax" && !has_argument) {
    return std::make_unique<Mlp>(input, std::span<const std::size_t>{});
  }
  if (name == "mlp") {
    return std::make_unique<Mlp>(input, parse_widths(spec, argument));
  }
  if (name == "cnn") {
    const auto channels =
        has_argument ? parse_widths(spec, argument) : std::vector<std::size_t>{8, 16};
    if (channels.size() != 2) {
      refuse("model", spec, "expected two numbers of channels, as in cnn:8,16");
    }
    if (!input.image || input.image->height < 4 || input.image->width < 4) {
      refuse("model", spec, "expected a task with images of at least 4 × 4; use softmax or mlp");
    }
    return std::make_unique<Cnn>(*input.image, channels[0], channels[1], input.classes);
  }
  std::vector<std::string_view> forms;
  for (const ModelInfo& info : models()) {
    forms.push_back(info.synopsis);
  }
  refuse("model", spec, fmt::format("expected {}", fmt::join(forms, ", ")));
}

}  // namespace sotto

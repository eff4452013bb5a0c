#include <sotto/study/measure/quantized_model.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/bit_allocation.h>
#include <sotto/compress/registry.h>

namespace sotto::study {
namespace {

/// The encodings that a tensor may get, besides staying as it is.
constexpr auto kEncodings = std::to_array<std::string_view>(
    {"fp16", "quant:8,rounding=nearest", "quant:6,rounding=nearest", "quant:4,rounding=nearest",
     "quant:3,rounding=nearest", "quant:2,rounding=nearest", "outlier:4", "outlier:3"});
/// Choices of the knapsack that are measured at most.
constexpr int kMostTried = 12;

/// One option of one tensor: its encoding, and what is left of the values.
struct EncodedTensor {
  std::string encoding;  ///< empty: exact
  std::vector<float> values;
};

QuantizedModel stopped_early() {
  QuantizedModel none;
  none.stopped = true;
  return none;
}

class Quantization {
 public:
  Quantization(Task& task, std::span<const float> parameters, const QuantizationOptions& options)
      : task_(task), x_(parameters), options_(options), gradient_(mean_gradient(parameters)) {}

  QuantizedModel run();

 private:
  /// The mean gradient over the batches, in double.
  std::vector<double> mean_gradient(std::span<const float> at);
  bool stopped() const { return options_.stop && options_.stop(); }
  /// False: it was stopped.
  bool predict();
  EncodedTensor decoded(std::string_view encoding, std::span<const float> values) const;
  /// ½ ⟨∇_i L(x) + ∇_i L(x + ε), ε⟩
  double change_of(const ParameterBlock& block, const EncodedTensor& candidate);
  QuantizedModel take(const std::vector<std::size_t>& chosen) const;
  /// The model with these options, on the test set; the best one so far is kept.
  QuantizedModel measured(const std::vector<std::size_t>& chosen);
  /// Measures each encoding alone.
  std::vector<UniformEncoding> uniform();
  /// Measures what the knapsack chooses, with less and less budget until that holds.
  void search();

  Task& task_;
  const std::span<const float> x_;
  const QuantizationOptions& options_;
  const std::vector<double> gradient_;
  std::vector<std::vector<EncodedTensor>> candidates_;  // by tensor
  std::vector<std::vector<EncodingOption>> costs_;
  Evaluation before_;
  std::optional<QuantizedModel> best_;
  int measured_ = 0;
};

std::vector<double> Quantization::mean_gradient(std::span<const float> at) {
  std::vector<double> mean(at.size());
  std::vector<float> gradient(at.size());
  for (Round batch = 0; batch < options_.batches; ++batch) {
    (void)task_.loss_and_gradient(batch, at, gradient);
    for (std::size_t k = 0; k < mean.size(); ++k) {
      mean[k] += static_cast<double>(gradient[k]) / static_cast<double>(options_.batches);
    }
  }
  return mean;
}

EncodedTensor Quantization::decoded(std::string_view encoding,
                                    std::span<const float> values) const {
  const std::string spec(encoding);
  const std::vector<std::byte> bytes = encode_tensor(spec, values);
  EncodedTensor candidate{.encoding = spec, .values = std::vector<float>(values.size())};
  const Status status = make_compressor(spec)->decode_add(bytes, 1, candidate.values);
  if (!status.ok()) {
    throw Error(fmt::format("{}: {}", spec, status.message()));
  }
  return candidate;
}

double Quantization::change_of(const ParameterBlock& block, const EncodedTensor& candidate) {
  std::vector<float> there(x_.begin(), x_.end());
  std::ranges::copy(candidate.values, block.of(std::span<float>(there)).begin());
  const std::vector<double> gradient = mean_gradient(there);
  double change = 0;
  for (std::size_t k = block.offset; k < block.offset + block.size; ++k) {
    const double error = static_cast<double>(there[k]) - static_cast<double>(x_[k]);
    change += 0.5 * (gradient_[k] + gradient[k]) * error;
  }
  return change;
}

bool Quantization::predict() {
  const ParameterLayout& layout = task_.layout();
  for (const ParameterBlock& block : layout) {
    const auto values = block.of(x_);
    auto& candidates = candidates_.emplace_back();
    auto& costs = costs_.emplace_back();
    candidates.push_back({.encoding = "", .values = {values.begin(), values.end()}});
    costs.push_back({.bytes = block.size * sizeof(float), .loss = 0});
    if (block.size < options_.least_elements) {
      continue;
    }
    for (const std::string_view encoding : kEncodings) {
      if (stopped()) {
        return false;
      }
      candidates.push_back(decoded(encoding, values));
      costs.push_back({.bytes = encode_tensor(candidates.back().encoding, values).size(),
                       .loss = change_of(block, candidates.back())});
    }
    if (options_.progress) {
      options_.progress(static_cast<double>(candidates_.size()) /
                        static_cast<double>(layout.size()));
    }
  }
  return true;
}

QuantizedModel Quantization::take(const std::vector<std::size_t>& chosen) const {
  QuantizedModel model;
  model.parameters.resize(x_.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const ParameterBlock& block = task_.layout()[i];
    const EncodedTensor& candidate = candidates_[i][chosen[i]];
    const EncodingOption& cost = costs_[i][chosen[i]];
    std::ranges::copy(candidate.values, block.of(std::span(model.parameters)).begin());
    model.tensors.push_back({.name = block.name,
                             .elements = block.size,
                             .encoding = candidate.encoding,
                             .bytes = cost.bytes,
                             .loss_change = cost.loss});
    model.predicted += cost.loss;
  }
  return model;
}

QuantizedModel Quantization::measured(const std::vector<std::size_t>& chosen) {
  QuantizedModel model = take(chosen);
  model.before = before_;
  model.after = task_.evaluate(model.parameters);
  ++measured_;
  if (model.after.loss <= before_.loss + options_.loss_budget &&
      (!best_ || model.bytes() < best_->bytes())) {
    best_ = model;
  }
  return model;
}

std::vector<UniformEncoding> Quantization::uniform() {
  std::vector<UniformEncoding> all;
  for (std::size_t k = 0; k < kEncodings.size(); ++k) {
    std::vector<std::size_t> chosen;
    for (const auto& options : costs_) {
      chosen.push_back(options.size() > 1 ? k + 1 : 0);
    }
    const QuantizedModel model = measured(chosen);
    all.push_back(
        {.encoding = std::string(kEncodings[k]), .bytes = model.bytes(), .loss = model.after.loss});
  }
  return all;
}

void Quantization::search() {
  double budget = options_.loss_budget;
  for (int tried = 0; tried < kMostTried && !stopped(); ++tried) {
    const auto chosen = allocate_bits(costs_, budget);
    if (!chosen) {
      return;
    }
    const QuantizedModel model = measured(*chosen);
    const double excess = model.after.loss - before_.loss - options_.loss_budget;
    if (excess <= 0) {
      return;
    }
    constexpr double kFurther = 1.5;  // what the prediction left out may grow with it
    budget = model.predicted - kFurther * excess;
  }
}

QuantizedModel Quantization::run() {
  if (!predict()) {
    return stopped_early();
  }
  before_ = task_.evaluate(x_);
  (void)measured(std::vector<std::size_t>(costs_.size()));  // as it is
  std::vector<UniformEncoding> alike = uniform();
  search();
  if (stopped()) {
    return stopped_early();
  }
  if (!best_) {
    throw Error(
        "loss_budget",
        fmt::format("{}: no choice of encodings was found that lowers the loss by that much",
                    options_.loss_budget));
  }
  best_->uniform = std::move(alike);
  best_->measured = measured_;
  return std::move(*best_);
}

}  // namespace

std::size_t QuantizedModel::bytes() const {
  std::size_t sum = 0;
  for (const QuantizedTensor& tensor : tensors) {
    sum += tensor.bytes;
  }
  return sum;
}

TensorEncodings QuantizedModel::encodings() const {
  TensorEncodings encodings;
  for (const QuantizedTensor& tensor : tensors) {
    if (!tensor.encoding.empty()) {
      encodings[tensor.name] = tensor.encoding;
    }
  }
  return encodings;
}

QuantizedModel quantize_model(Task& task, std::span<const float> parameters,
                              const QuantizationOptions& options) {
  if (parameters.size() != task.dimension()) {
    throw Error(fmt::format("a model of {} parameters, and the task's has {}", parameters.size(),
                            task.dimension()));
  }
  if (options.batches < 1) {
    refuse("batches", "0", "gradients of 1 batch or more predict the loss");
  }
  if (!std::isfinite(options.loss_budget)) {
    refuse("loss_budget", fmt::to_string(options.loss_budget), "it is a finite number");
  }
  return Quantization(task, parameters, options).run();
}

}  // namespace sotto::study

#include <sotto/compress/compressor_budget.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/compress/bit_allocation.h>
#include <sotto/compress/registry.h>

namespace sotto {
namespace {

double squared_norm(std::span<const float> v) {
  double sum = 0;
  for (const float value : v) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return sum;
}

/// ‖C(v) − v‖²
double squared_error(Compressor& compressor, std::span<const float> v, std::uint64_t sample) {
  std::vector<std::byte> bytes(compressor.max_bytes(v.size()));
  std::vector<float> residual(v.begin(), v.end());
  const RandomKey key = {.seed = sample, .purpose = Purpose::select};
  (void)compressor.encode_residual(residual, key, bytes);
  return squared_norm(residual);
}

/// What each encoding of a tensor costs, and loses over the samples.
std::vector<EncodingOption> options_of(const ParameterBlock& tensor,
                                       std::span<const std::vector<float>> samples,
                                       std::span<const std::unique_ptr<Compressor>> encodings) {
  std::vector<EncodingOption> options;
  for (const auto& encoding : encodings) {
    EncodingOption& option = options.emplace_back();
    // A payload with several tensors says how long each encoding is (per_tensor.h).
    option.bytes = sizeof(std::uint32_t) + encoding->max_bytes(tensor.size);
    for (std::size_t k = 0; k < samples.size(); ++k) {
      option.loss += squared_error(*encoding, tensor.of(std::span<const float>(samples[k])), k);
    }
  }
  return options;
}

/// Rules can be written for names that are unique and have none of the signs of a specification.
void require_names(const ParameterLayout& layout) {
  std::set<std::string_view> names;
  for (const ParameterBlock& tensor : layout) {
    if (tensor.name.find_first_of(";=*? ") != std::string::npos || tensor.name.empty() ||
        !names.insert(tensor.name).second) {
      refuse("compressor", "auto",
             fmt::format("the tensor '{}' cannot be named in a rule: names must differ, and have "
                         "none of ; = * ? and no blanks",
                         tensor.name));
    }
  }
}

/// "DEFAULT; NAME=SPEC; …", where the default is what most values get.
std::string spec_of(const ParameterLayout& layout, std::span<const std::string> encodings,
                    std::span<const std::size_t> chosen) {
  std::map<std::size_t, std::size_t> values;  // by encoding
  for (std::size_t i = 0; i < layout.size(); ++i) {
    values[chosen[i]] += layout[i].size;
  }
  const auto most =
      std::ranges::max_element(values, {}, [](const auto& encoding) { return encoding.second; });
  std::string spec = encodings[most->first];
  const bool alike = spec == "none" || spec == "fp16";  // wherever a vector is cut
  if (values.size() == 1 && layout.size() > 1 && !alike) {
    // A rule that changes nothing keeps the scales of tensors apart, as they were measured.
    return fmt::format("{}; {}={}", spec, layout.front().name, spec);
  }
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (chosen[i] != most->first) {
      spec += fmt::format("; {}={}", layout[i].name, encodings[chosen[i]]);
    }
  }
  return spec;
}

}  // namespace

std::span<const std::string> budget_encodings() {
  static const std::vector<std::string> encodings = {"sign",    "quant:2", "quant:3", "quant:4",
                                                     "quant:6", "quant:8", "fp16",    "none"};
  return encodings;
}

BudgetedCompressor compressor_within(std::size_t most_bytes,
                                     std::span<const std::vector<float>> samples,
                                     const ParameterLayout& layout,
                                     std::span<const std::string> encodings, ContractKind need,
                                     std::size_t vectors) {
  check(!samples.empty() && !layout.empty() && !encodings.empty() && vectors > 0,
        "there are samples, tensors, encodings and a vector to send");
  if (layout.size() > 1) {
    require_names(layout);
  }
  std::vector<std::unique_ptr<Compressor>> compressors;
  compressors.reserve(encodings.size());
  for (const std::string& encoding : encodings) {
    compressors.push_back(make_compressor(encoding, need));
  }
  std::vector<std::vector<EncodingOption>> options;
  std::size_t fewest = 0;
  for (const ParameterBlock& tensor : layout) {
    options.push_back(options_of(tensor, samples, compressors));
    fewest += std::ranges::min(options.back(), {}, &EncodingOption::bytes).bytes;
  }
  const auto chosen = allocate_bytes(options, most_bytes / vectors);
  if (!chosen) {
    refuse("compressor", fmt::format("auto:{}", most_bytes),
           fmt::format("the model's {} tensors take {} bytes at least", layout.size(),
                       vectors * fewest));
  }
  double lost = 0;
  double whole = 0;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    lost += options[i][(*chosen)[i]].loss;
  }
  for (const auto& sample : samples) {
    whole += squared_norm(sample);
  }
  BudgetedCompressor found{.spec = spec_of(layout, encodings, *chosen),
                           .relative_error = whole > 0 ? std::sqrt(lost / whole) : 0};
  found.bytes =
      make_compressor(found.spec, need, host_ops(), layout)->max_bytes(dimension_of(layout));
  check(found.bytes <= most_bytes / vectors, "what was chosen fits");
  return found;
}

}  // namespace sotto

#include "coded_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/check.h>

#include "level_fit.h"
#include "payload.h"
#include "value_groups.h"

namespace sotto::internal {
namespace {

/// The smallest step that reaches `largest`, unless its multiples would reach beyond float32.
float step_to(float largest, double most) {
  const double exact = static_cast<double>(largest) / most;
  auto step = static_cast<float>(exact);
  if (static_cast<double>(step) < exact) {
    step = std::nextafter(step, std::numeric_limits<float>::infinity());
  }
  while (!std::isfinite(static_cast<float>(most) * step)) {
    step = std::nextafter(step, 0.0F);
  }
  return step;
}

/// Puts each magnitude on the nearest multiple of the step that is returned.
float fit_step(std::span<const float> values, std::size_t levels, std::span<std::uint8_t> cells) {
  float largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::abs(value));
  }
  const auto most = static_cast<double>(levels - 1);
  const float step = step_to(largest, most);
  // Where all are zero, what they are divided by does not matter.
  const double unit = step > 0 ? static_cast<double>(step) : 1.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double multiple = static_cast<double>(std::abs(values[i])) / unit + 0.5;
    cells[i] = static_cast<std::uint8_t>(std::min(multiple, most));
  }
  return step;
}

}  // namespace

double CodedValues::least_kept_by_grid(std::size_t longest) const {
  const auto most = static_cast<double>(levels() - 1);
  return 4 * most * most / (static_cast<double>(longest) + 4 * most * most);
}

void CodedValues::encode(std::span<float> values, std::span<std::byte> parameters,
                         std::span<std::byte> codes) const {
  check(values.size() <= ValueGroups::kLongest, "a group of coded values is too long");
  std::array<std::uint8_t, ValueGroups::kLongest> room{};
  const auto cells = std::span(room).first(values.size());
  std::array<float, kMostLevels> fit{};
  const auto found = std::span(fit).first(this->parameters());
  if (fitted()) {
    fit_levels(values, found, cells);
  } else {
    found[0] = fit_step(values, levels(), cells);
  }
  ByteWriter(parameters).write_bytes(std::as_bytes(found));
  const auto sign = static_cast<float>(levels());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(cells[i]) + (values[i] < 0 ? sign : 0.0F);
  }
  ops_.quantize_pack(values, units(), Rounding::nearest, {}, 0, codes);
  look_up(parameters, values);
}

void CodedValues::look_up(std::span<const std::byte> parameters, std::span<float> codes) const {
  std::array<float, 256> table{};
  for (std::size_t level = 0; level < levels(); ++level) {
    table[level] = fitted() ? load<float>(parameters, level)
                            : static_cast<float>(level) * load<float>(parameters, 0);
    table[level + levels()] = -table[level];
  }
  for (float& code : codes) {
    code = table[static_cast<std::uint8_t>(static_cast<int>(code))];
  }
}

Status CodedValues::judge(std::size_t group, std::span<const std::byte> parameters,
                          std::span<const std::byte> codes, std::size_t count) const {
  for (std::size_t i = 0; i < this->parameters(); ++i) {
    const auto value = load<float>(parameters, i);
    const float largest = fitted() ? value : static_cast<float>(levels() - 1) * value;
    if (!std::isfinite(largest)) {
      return non_finite(fmt::format("topk: {} {} of group {} is {}, which is not finite",
                                    fitted() ? "level" : "step", i, group, value));
    }
    if (value < 0) {
      return malformed(fmt::format("topk: {} {} of group {} is {}, which is negative",
                                   fitted() ? "level" : "step", i, group, value));
    }
  }
  return padding_is_zero(codes, count, bits_)
             ? Status()
             : malformed(fmt::format("topk: padding of group {} is not zero", group));
}

void CodedValues::decode(std::span<const std::byte> parameters, std::span<const std::byte> codes,
                         std::span<float> values) const {
  ops_.fill(0, values);
  ops_.unpack_axpy(1, codes, units(), values);
  look_up(parameters, values);
}

std::optional<int> take_value_bits(SpecReader& spec) {
  const auto choice = spec.choice("values", {"1", "2", "3", "4", "5", "6", "7", "8", "32"});
  if (!choice) {
    return std::nullopt;
  }
  return *choice == 8 ? kFloatBits : static_cast<int>(*choice) + 1;
}

}  // namespace sotto::internal

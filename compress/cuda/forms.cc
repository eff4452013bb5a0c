#include <sotto/compress/cuda/forms.h>

#include <algorithm>
#include <span>
#include <string>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/compress/cuda/codec.h>

#include "../internal/spec.h"

namespace sotto::cuda {
namespace {

ChosenForm quant_form(internal::SpecReader& spec) {
  ChosenForm form;
  QuantFormat format;
  format.depth = static_cast<std::uint32_t>(spec.take_integer("B", 1, 8));
  form.chunk = spec.chunk().value_or(0);
  format.stochastic = spec.choice("rounding", {"stochastic", "nearest"}).value_or(0) == 0;
  form.format = format;
  ByteWriter prefix(form.prefix);
  prefix.write(static_cast<std::uint8_t>(format.depth));
  prefix.write(static_cast<std::uint32_t>(form.chunk));
  form.prefix_size = static_cast<std::uint32_t>(prefix.position());
  return form;
}

ChosenForm grid_form(internal::SpecReader& spec) {
  ChosenForm form;
  GridFormat format;
  format.grid.bits = spec.take_integer("B", 1, 8);
  format.grid.step = spec.take_float("STEP", "a positive number");
  format.grid.origin = -std::ldexp(format.grid.step, format.grid.bits - 1);
  form.format = format;
  ByteWriter prefix(form.prefix);
  prefix.write(static_cast<std::uint8_t>(format.grid.bits));
  prefix.write(format.grid.step);
  form.prefix_size = static_cast<std::uint32_t>(prefix.position());
  return form;
}

ChosenForm sign_form(internal::SpecReader& spec) {
  ChosenForm form;
  SignFormat format;
  form.chunk = spec.chunk().value_or(0);
  format.by_mean = spec.choice("scale", {"mean", "l2"}).value_or(0) == 0;
  form.format = format;
  ByteWriter prefix(form.prefix);
  prefix.write(static_cast<std::uint32_t>(form.chunk));
  form.prefix_size = static_cast<std::uint32_t>(prefix.position());
  return form;
}

template <typename Format>
ChosenForm plain_form(internal::SpecReader& /*spec*/) {
  return {.format = Format()};
}

struct Family {
  std::string_view name;
  ChosenForm (*form)(internal::SpecReader& spec);
};

constexpr Family kFamilies[] = {{"none", plain_form<Fp32Format>},
                                {"fp16", plain_form<Fp16Format>},
                                {"bf16", plain_form<Bf16Format>},
                                {"quant", quant_form},
                                {"grid", grid_form},
                                {"sign", sign_form}};

const Family* find_family(std::string_view name) {
  const auto* const found = std::ranges::find(kFamilies, name, &Family::name);
  return found == std::end(kFamilies) ? nullptr : found;
}

/// "none, fp16 or sign"
std::string all_families() {
  std::string names;
  for (const Family& family : kFamilies) {
    const bool first = &family == std::begin(kFamilies);
    const bool last = &family + 1 == std::end(kFamilies);
    names += fmt::format("{}{}", first ? "" : last ? " or " : ", ", family.name);
  }
  return names;
}

}  // namespace

bool has_codec(std::string_view family) { return find_family(family) != nullptr; }

ChosenForm choose_form(std::string_view text) {
  internal::SpecReader spec(text);
  if (const Family* family = find_family(spec.name())) {
    return family->form(spec);
  }
  refuse("compressor on a CUDA device", text,
         fmt::format("{} would do, and for an optimizer topk:KEEP", all_families()));
}

}  // namespace sotto::cuda

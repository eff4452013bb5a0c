#include <sotto/compress/cuda/forms.h>

#include <array>
#include <span>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>

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

}  // namespace

ChosenForm choose_form(std::string_view text) {
  internal::SpecReader spec(text);
  if (spec.name() == "quant") {
    return quant_form(spec);
  }
  if (spec.name() == "grid") {
    return grid_form(spec);
  }
  if (spec.name() == "sign") {
    return sign_form(spec);
  }
  if (spec.name() == "none") {
    return {.format = Fp32Format()};
  }
  if (spec.name() == "fp16") {
    return {.format = Fp16Format()};
  }
  if (spec.name() == "bf16") {
    return {.format = Bf16Format()};
  }
  refuse("compressor on a CUDA device", text, "none, fp16, bf16, quant, grid or sign would do");
}

}  // namespace sotto::cuda

#include "families.h"

#include <sotto/compress/grid.h>
#include <sotto/compress/half.h>
#include <sotto/compress/low_rank.h>
#include <sotto/compress/none.h>
#include <sotto/compress/outlier.h>
#include <sotto/compress/quant.h>
#include <sotto/compress/randk.h>
#include <sotto/compress/sign.h>
#include <sotto/compress/topk.h>

namespace sotto::internal {
std::unique_ptr<Compressor> build_none(SpecReader& /*spec*/, const Wanted& wanted) {
  return make_none(wanted.ops);
}

std::unique_ptr<Compressor> build_fp16(SpecReader& /*spec*/, const Wanted& wanted) {
  return make_fp16(wanted.ops);
}

std::unique_ptr<Compressor> build_bf16(SpecReader& /*spec*/, const Wanted& wanted) {
  return make_bf16(wanted.ops);
}

std::unique_ptr<Compressor> build_quant(SpecReader& spec, const Wanted& wanted) {
  QuantOptions options;
  options.bits = spec.take_integer("B", 1, 8);
  options.chunk = spec.chunk().value_or(default_quant_chunk(options.bits));
  const std::size_t form = spec.choice("rounding", {"stochastic", "nearest"})
                               .value_or(wanted.need == ContractKind::contraction ? 1 : 0);
  options.rounding = form == 0 ? Rounding::stochastic : Rounding::nearest;
  return make_quant(options, wanted.ops);
}

std::unique_ptr<Compressor> build_grid(SpecReader& spec, const Wanted& wanted) {
  GridOptions options;
  options.bits = spec.take_integer("B", 1, 8);
  options.step = spec.take_float("STEP", "a positive number");
  return make_grid(options, wanted.ops);
}

std::unique_ptr<Compressor> build_sign(SpecReader& spec, const Wanted& wanted) {
  SignOptions options;
  options.chunk = spec.chunk().value_or(options.chunk);
  options.scale =
      spec.choice("scale", {"mean", "l2"}).value_or(0) == 0 ? SignScale::mean : SignScale::l2;
  return make_sign(options, wanted.ops);
}

std::unique_ptr<Compressor> build_topk(SpecReader& spec, const Wanted& wanted) {
  return make_topk(spec.take_double("KEEP", "a number in (0, 1]"), wanted.ops);
}

std::unique_ptr<Compressor> build_randk(SpecReader& spec, const Wanted& wanted) {
  RandkOptions options;
  options.keep_ratio = spec.take_double("KEEP", "a number in (0, 1]");
  const std::size_t form = spec.choice("scale", {"unbiased", "none"})
                               .value_or(wanted.need == ContractKind::contraction ? 1 : 0);
  options.scale = form == 0 ? RandkScale::unbiased : RandkScale::none;
  return make_randk(options);
}

std::unique_ptr<Compressor> build_outlier(SpecReader& spec, const Wanted& wanted) {
  OutlierOptions options;
  options.bits = spec.take_integer("B", 2, 8);
  options.chunk = spec.chunk().value_or(default_outlier_chunk(options.bits));
  options.k = spec.number("k").value_or(options.k);
  return make_outlier(options, wanted.ops);
}

std::unique_ptr<Compressor> build_low_rank(SpecReader& spec, const Wanted& wanted) {
  LowRankOptions options;
  options.rank = spec.take_integer("K", 1, kMaxLowRank);
  options.warm_start = spec.choice("start", {"warm", "random"}).value_or(0) == 0;
  options.steps = spec.integer("steps", 1, kMaxLowRankSteps).value_or(options.steps);
  return make_low_rank(options, wanted.layout);
}

}  // namespace sotto::internal

#include "families.h"

#include <fmt/format.h>

#include <sotto/compress/none.h>
#include <sotto/compress/quant.h>
#include <sotto/compress/sign.h>
#include <sotto/compress/topk.h>

namespace sotto::internal {
namespace {

double take_keep_ratio(SpecReader& spec) {
  constexpr std::string_view kWanted = "a number in (0, 1], the share of elements to keep,";
  const double keep = spec.take_double("KEEP", kWanted);
  if (!(keep > 0 && keep <= 1)) {
    spec.reject("KEEP", fmt::format("{}", keep), fmt::format("{} would do", kWanted));
  }
  return keep;
}

}  // namespace

std::unique_ptr<Compressor> build_none(SpecReader& /*spec*/, ContractKind /*need*/,
                                       const Ops& ops) {
  return make_none(ops);
}

std::unique_ptr<Compressor> build_quant(SpecReader& spec, ContractKind need, const Ops& ops) {
  QuantOptions options;
  options.bits = spec.take_integer("B", 1, 8);
  options.chunk = spec.chunk().value_or(default_quant_chunk(options.bits));
  const std::size_t form = spec.choice("rounding", {"stochastic", "nearest"})
                               .value_or(need == ContractKind::contraction ? 1 : 0);
  options.rounding = form == 0 ? Rounding::stochastic : Rounding::nearest;
  return make_quant(options, ops);
}

std::unique_ptr<Compressor> build_sign(SpecReader& spec, ContractKind /*need*/, const Ops& ops) {
  SignOptions options;
  options.chunk = spec.chunk().value_or(options.chunk);
  options.scale =
      spec.choice("scale", {"mean", "l2"}).value_or(0) == 0 ? SignScale::mean : SignScale::l2;
  return make_sign(options, ops);
}

std::unique_ptr<Compressor> build_topk(SpecReader& spec, ContractKind /*need*/, const Ops& ops) {
  return make_topk(take_keep_ratio(spec), ops);
}

}  // namespace sotto::internal

#include <sotto/compress/registry.h>

#include <array>
#include <string>
#include <vector>

#include <sotto/base/nearest.h>
#include <sotto/compress/grid.h>
#include <sotto/compress/half.h>
#include <sotto/compress/low_rank.h>
#include <sotto/compress/none.h>
#include <sotto/compress/outlier.h>
#include <sotto/compress/per_tensor.h>
#include <sotto/compress/quant.h>
#include <sotto/compress/randk.h>
#include <sotto/compress/sign.h>
#include <sotto/compress/topk.h>

#include "internal/families.h"

namespace sotto {
namespace {

struct Family {
  CompressorInfo info;
  internal::Builder build;  ///< null: the specification has another form
};

constexpr Family kFamilies[] = {
    {{"none", "none", "float32 as it is", "exact: meets every contract", "none", kNoneWireId},
     internal::build_none},
    {{"fp16", "fp16", "IEEE half precision", "contraction, δ = 1 − 2^-22 from 2^-14 to 65504",
      "fp16", kFp16WireId},
     internal::build_fp16},
    {{"bf16", "bf16", "bfloat16: float32's range in 16 bits",
      "contraction, δ = 1 − 2^-16 from 2^-126 on", "bf16", kBf16WireId},
     internal::build_bf16},
    {{"quant", "quant:B[,chunk=N][,rounding=stochastic|nearest]",
      "B bits (1 … 8) on a uniform grid fitted to each chunk",
      "stochastic: unbiased, relative; nearest: contraction for B ≥ 2; steps from 2^-126 on",
      "quant:8", kQuantWireId},
     internal::build_quant},
    {{"grid", "grid:B:STEP", "B bits (1 … 8) on a fixed grid about zero, saturating",
      "unbiased, absolute: STEP/2 per element within the range", "grid:8:0.01", kGridWireId},
     internal::build_grid},
    {{"sign", "sign[,chunk=N][,scale=mean|l2]", "one bit an element and one scale a chunk",
      "scale=mean: contraction; scale=l2: none, it can expand", "sign", kSignWireId},
     internal::build_sign},
    {{"topk", "topk:KEEP", "the KEEP × d largest elements, exact, with coded indices",
      "contraction, δ = KEEP", "topk:0.1", kTopkWireId},
     internal::build_topk},
    {{"randk", "randk:KEEP[,scale=unbiased|none]",
      "KEEP × d random elements; their indices cost no bytes",
      "scale=unbiased: unbiased, α² = 1/KEEP − 1; scale=none: contraction, δ = KEEP", "randk:0.1",
      kRandkWireId},
     internal::build_randk},
    {{"outlier", "outlier:B[,chunk=N][,k=SIGMAS]",
      "B bits (2 … 8) with a fitted scale a chunk; what lies beyond k σ travels exactly",
      "contraction; steps from 2^-126 on", "outlier:4", kOutlierWireId},
     internal::build_outlier},
    {{"lowrank", "lowrank:K[,start=warm|random][,steps=N]",
      "every matrix as two factors of rank K, by a power iteration over rounds",
      "contraction, δ = K / the shorter side", "lowrank:2", kLowRankWireId},
     internal::build_low_rank},
    {{"per_tensor", "SPEC; SELECTOR=SPEC[; …]",
      "a compressor for every tensor; SELECTOR is a name with * and ?, 1d, or under:ELEMENTS",
      "the worst of its parts", "quant:4; 1d=none", kPerTensorWireId},
     nullptr},
};

constexpr auto kInfos = [] {
  std::array<CompressorInfo, std::size(kFamilies)> infos;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    infos[i] = kFamilies[i].info;
  }
  return infos;
}();

}  // namespace

std::span<const CompressorInfo> compressors() { return kInfos; }

std::unique_ptr<Compressor> make_compressor(std::string_view spec, ContractKind need,
                                            const Ops& ops, const ParameterLayout& layout) {
  if (is_per_tensor(spec)) {
    return make_per_tensor(spec, need, ops, layout);
  }
  internal::SpecReader reader(spec);
  for (const Family& family : kFamilies) {
    if (family.info.name == reader.name() && family.build != nullptr) {
      auto compressor = family.build(reader, {need, ops, layout});
      reader.finish();
      return compressor;
    }
  }
  refuse_unregistered("compressor", spec, kInfos);
}

}  // namespace sotto

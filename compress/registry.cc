#include <sotto/compress/registry.h>

#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/compress/none.h>
#include <sotto/compress/quant.h>
#include <sotto/compress/sign.h>
#include <sotto/compress/topk.h>

#include "internal/families.h"

namespace sotto {
namespace {

struct Family {
  CompressorInfo info;
  internal::Builder build;
};

constexpr Family kFamilies[] = {
    {{"none", "none", "float32 as it is", "exact: meets every contract", "none", kNoneWireId},
     internal::build_none},
    {{"quant", "quant:B[,chunk=N][,rounding=stochastic|nearest]",
      "B bits (1 … 8) on a uniform grid fitted to each chunk",
      "stochastic: unbiased, relative; nearest: contraction for B ≥ 2", "quant:8", kQuantWireId},
     internal::build_quant},
    {{"sign", "sign[,chunk=N][,scale=mean|l2]", "one bit an element and one scale a chunk",
      "scale=mean: contraction; scale=l2: none, it can expand", "sign", kSignWireId},
     internal::build_sign},
    {{"topk", "topk:KEEP", "the KEEP × d largest elements, exact, with coded indices",
      "contraction, δ = KEEP", "topk:0.1", kTopkWireId},
     internal::build_topk},
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
                                            const Ops& ops) {
  internal::SpecReader reader(spec);
  std::vector<std::string_view> synopses;
  for (const Family& family : kFamilies) {
    if (family.info.name == reader.name()) {
      auto compressor = family.build(reader, need, ops);
      reader.finish();
      return compressor;
    }
    synopses.push_back(family.info.synopsis);
  }
  refuse("compressor", spec, fmt::format("one of {} would do", fmt::join(synopses, "; ")));
}

}  // namespace sotto

#include <sotto/compress/registry.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <type_traits>

#include <sotto/base/nearest.h>
#include <sotto/compress/per_tensor.h>

#include "internal/family.h"

namespace sotto {
namespace {

const auto& families() {
  static const std::array all = {
      internal::kNoneFamily,    internal::kFp16Family,     internal::kBf16Family,
      internal::kQuantFamily,   internal::kGridFamily,     internal::kSignFamily,
      internal::kTopkFamily,    internal::kRandkFamily,    internal::kOutlierFamily,
      internal::kLowRankFamily, internal::kPerTensorFamily};
  return all;
}

}  // namespace

std::span<const CompressorInfo> compressors() {
  static const auto infos = [] {
    std::array<CompressorInfo, std::tuple_size_v<std::decay_t<decltype(families())>>> all;
    std::ranges::transform(families(), all.begin(), &internal::Family::info);
    return all;
  }();
  return infos;
}

std::unique_ptr<Compressor> make_compressor(std::string_view spec, ContractKind need,
                                            const Ops& ops, const ParameterLayout& layout) {
  if (is_per_tensor(spec)) {
    return make_per_tensor(spec, need, ops, layout);
  }
  internal::SpecReader reader(spec);
  for (const internal::Family& family : families()) {
    if (family.info.name == reader.name() && family.build != nullptr) {
      auto compressor = family.build(reader, {need, ops, layout});
      reader.finish();
      return compressor;
    }
  }
  refuse_unregistered("compressor", spec, compressors());
}

}  // namespace sotto

#include <sotto/compress/registry.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <type_traits>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/compress/per_tensor.h>

#include "internal/family.h"

namespace sotto {
namespace {

const auto& families() {
  static const std::array all = {
      internal::kNoneFamily,    internal::kFp16Family,  internal::kBf16Family,
      internal::kQuantFamily,   internal::kGridFamily,  internal::kSignFamily,
      internal::kTopkFamily,    internal::kRandkFamily, internal::kOutlierFamily,
      internal::kLowRankFamily, internal::kDctFamily};
  return all;
}

/// Builds what `spec` says. An error about one of the family's parameters becomes one about the
/// compressor, so that it names the setting that people gave.
std::unique_ptr<Compressor> build(const internal::Family& family, std::string_view spec,
                                  const internal::Wanted& wanted) {
  internal::SpecReader reader(spec);
  try {
    auto compressor = family.build(reader, wanted);
    reader.finish();
    return compressor;
  } catch (const Error& error) {
    if (error.field() == "compressor" || !error.value()) {
      throw;
    }
    throw Error("compressor",
                fmt::format("{}: {}: '{}' is refused: ", spec, error.field(), *error.value()) +
                    error.reason());
  }
}

}  // namespace

std::span<const CompressorInfo> compressors() {
  static const auto infos = [] {
    std::array<CompressorInfo, std::tuple_size_v<std::decay_t<decltype(families())>> + 1> all;
    std::ranges::transform(families(), all.begin(), &internal::Family::info);
    all.back() = internal::kPerTensorInfo;
    return all;
  }();
  return infos;
}

std::unique_ptr<Compressor> make_compressor(std::string_view spec, ContractKind need,
                                            const Ops& ops, const ParameterLayout& layout) {
  if (is_per_tensor(spec)) {
    return make_per_tensor(spec, need, ops, layout);
  }
  const internal::SpecReader reader(spec);
  for (const internal::Family& family : families()) {
    if (family.info.name == reader.name()) {
      return build(family, spec, {need, ops, layout});
    }
  }
  refuse_unregistered("compressor", spec, compressors());
}

}  // namespace sotto

// A family of compressors: what is known of it, and how a specification becomes an object.
//
// Each is defined at the end of its own file; registry.cc lists them.
#pragma once

#include <memory>
#include <optional>

#include <sotto/base/parameter_layout.h>
#include <sotto/compress/coded_topk.h>
#include <sotto/compress/compressor.h>
#include <sotto/compress/registry.h>

#include "spec.h"

namespace sotto::internal {

/// The use for which a compressor is wanted.
struct Wanted {
  ContractKind need;  ///< decides between a family's forms where the specification does not
  const Ops& ops;
  const ParameterLayout& layout;
};

/// One family: its facts, and its builder.
struct Family {
  CompressorInfo info;
  /// Builds what `spec` says; throws Error for what it does not understand.
  std::unique_ptr<Compressor> (*build)(SpecReader& spec, const Wanted& wanted);
};

extern const Family kNoneFamily;
extern const Family kFp16Family;
extern const Family kBf16Family;
extern const Family kQuantFamily;
extern const Family kGridFamily;
extern const Family kSignFamily;
extern const Family kTopkFamily;
extern const Family kRandkFamily;
extern const Family kOutlierFamily;
extern const Family kLowRankFamily;
extern const Family kDctFamily;
/// The facts of specifications with a compressor for every tensor, which make_per_tensor builds
/// from other families.
extern const CompressorInfo kPerTensorInfo;

/// The arguments and parameters of `topk`; nothing where they say its first form (topk.h), for
/// which `keep_ratio` is set as well.
std::optional<CodedTopkOptions> take_coded_topk(SpecReader& spec, double& keep_ratio);
/// `randk` with few bits a value, or over `topk`; null where `spec` says its first form (randk.h).
std::unique_ptr<Compressor> build_coded_randk(SpecReader& spec, double keep_ratio,
                                              const Wanted& wanted);

}  // namespace sotto::internal

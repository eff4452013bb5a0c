// The families of compressors, each as a function from a specification to an object.
//
// Pure functions;
// thread-safe. Each throws Error for what it does not understand.
#pragma once

#include <memory>

#include <sotto/base/parameter_layout.h>
#include <sotto/compress/compressor.h>

#include "spec.h"

namespace sotto::internal {

/// What a compressor is wanted for.
struct Wanted {
  ContractKind need;  ///< decides between a family's forms where the specification does not
  const Ops& ops;
  const ParameterLayout& layout;
};

using Builder = std::unique_ptr<Compressor> (*)(SpecReader& spec, const Wanted& wanted);

std::unique_ptr<Compressor> build_none(SpecReader& spec, const Wanted& wanted);
std::unique_ptr<Compressor> build_fp16(SpecReader& spec, const Wanted& wanted);
std::unique_ptr<Compressor> build_bf16(SpecReader& spec, const Wanted& wanted);
std::unique_ptr<Compressor> build_quant(SpecReader& spec, const Wanted& wanted);
std::unique_ptr<Compressor> build_grid(SpecReader& spec, const Wanted& wanted);
std::unique_ptr<Compressor> build_sign(SpecReader& spec, const Wanted& wanted);
std::unique_ptr<Compressor> build_topk(SpecReader& spec, const Wanted& wanted);
std::unique_ptr<Compressor> build_randk(SpecReader& spec, const Wanted& wanted);
std::unique_ptr<Compressor> build_outlier(SpecReader& spec, const Wanted& wanted);
std::unique_ptr<Compressor> build_low_rank(SpecReader& spec, const Wanted& wanted);

}  // namespace sotto::internal

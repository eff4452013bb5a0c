// The families of compressors, each as a function from a specification to an object.
//
// `need` decides between a family's forms where the specification does not. Pure functions;
// thread-safe. Each throws Error for what it does not understand.
#pragma once

#include <memory>

#include <sotto/compress/compressor.h>

#include "spec.h"

namespace sotto::internal {

using Builder = std::unique_ptr<Compressor> (*)(SpecReader& spec, ContractKind need,
                                                const Ops& ops);

std::unique_ptr<Compressor> build_none(SpecReader& spec, ContractKind need, const Ops& ops);
std::unique_ptr<Compressor> build_fp16(SpecReader& spec, ContractKind need, const Ops& ops);
std::unique_ptr<Compressor> build_bf16(SpecReader& spec, ContractKind need, const Ops& ops);
std::unique_ptr<Compressor> build_quant(SpecReader& spec, ContractKind need, const Ops& ops);
std::unique_ptr<Compressor> build_grid(SpecReader& spec, ContractKind need, const Ops& ops);
std::unique_ptr<Compressor> build_sign(SpecReader& spec, ContractKind need, const Ops& ops);
std::unique_ptr<Compressor> build_topk(SpecReader& spec, ContractKind need, const Ops& ops);
std::unique_ptr<Compressor> build_randk(SpecReader& spec, ContractKind need, const Ops& ops);
std::unique_ptr<Compressor> build_outlier(SpecReader& spec, ContractKind need, const Ops& ops);

}  // namespace sotto::internal

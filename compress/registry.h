// Compressors by name: `quant:4,chunk=512` → an object. Pure functions; thread-safe.
//
// Specifications: `NAME[:ARGUMENT…][,parameter=value…]`, two such where the second works on what
// the first lets through, `randk:0.1/topk:0.2,values=4` (coded_randk.h), or one as a default and
// rules for some tensors, `quant:4; *.bias=none; 1d=fp16; under:1024=none` (per_tensor.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <sotto/base/parameter_layout.h>
#include <sotto/compress/compressor.h>

namespace sotto {

/// One family of compressors, as `sotto list` shows it.
struct CompressorInfo {
  std::string_view name;  ///< the family's name, "quant"
  /// Form of its specification, "quant:B[,chunk=N][,rounding=stochastic|nearest]".
  std::string_view synopsis;
  std::string_view summary;   ///< one sentence
  std::string_view contract;  ///< the contract in words
  std::string_view example;   ///< a specification that builds
  std::uint16_t wire_id = 0;  ///< number in frames of the example's form
  /// The number of its form with few bits a value, where it has one; 0: none.
  std::uint16_t coded_wire_id = 0;
};

/// All families, in a fixed order.
std::span<const CompressorInfo> compressors();

/// Builds the compressor that `spec` names. `layout` describes the vectors that it will get, for
/// rules by tensor; empty: nothing is known of them.
///
/// Some families have two forms, an unbiased one and a contraction (quant rounds stochastically or
/// to the nearest; randk scales by d/k or not). A parameter of the spec chooses; where it does not,
/// `need` does, so that each algorithm gets the form that its theory asks for.
/// Throws Error naming the parameter, the value and what would do.
std::unique_ptr<Compressor> make_compressor(std::string_view spec,
                                            ContractKind need = ContractKind::any,
                                            const Ops& ops = host_ops(),
                                            const ParameterLayout& layout = {});

/// √(E‖C(x) − x‖² / ‖x‖²), measured on Gaussian x of `elements` elements, `samples` times.
/// Deterministic in seed. The typical figure beside Contract's worst case.
double measure_alpha(Compressor& compressor, std::size_t elements, int samples,
                     std::uint64_t seed = 0);

/// The α that decisions use: measure_alpha over 4 samples of vectors of the model's dimension, at
/// most 2^16 elements.
double typical_alpha(const Compressor& compressor, std::size_t dimension);

}  // namespace sotto

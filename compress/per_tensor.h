// A compressor for every tensor of a layout: biases exact, say, and the large matrices in 4 bits.
//
// Grammar, with spaces around `;` as one likes:
//   SPEC; SELECTOR=SPEC; SELECTOR=SPEC …
// The first SPEC is the default; of the rules the first with a selector that fits a tensor decides.
// base/tensor_selector.h has the selectors: names with * and ?, 1d, ends, under:N.
// Example: quant:4; head.*=fp16; 1d=none; under:1024=quant:8
//
// Payload: for each tensor in the order of the layout the length of its encoding (4 bytes) and the
// encoding. A vector of another length than the layout's (a chunk of APMSqueeze, say), and every
// vector when the layout is empty or has a single tensor, is one encoding of the default.
//
// Contract: the worst of its parts, since errors and squares add up over tensors: the largest α,
// the smallest δ, unbiased if all are.
//
// Each tensor draws random numbers of its own. Thread safety and ownership: see Compressor.
// decode_add keeps a copy of y, to put back when a later tensor turns out malformed; it is
// allocated when it first grows.
#pragma once

#include <memory>
#include <string_view>

#include <sotto/base/parameter_layout.h>
#include <sotto/compress/compressor.h>

namespace sotto {

inline constexpr std::uint16_t kPerTensorWireId = 11;  ///< the compressor's number in frames

/// Whether `spec` has rules, so that it names this compressor.
inline bool is_per_tensor(std::string_view spec) {
  return spec.find(';') != std::string_view::npos;
}

/// `need` chooses the form of every part, as in make_compressor. Throws Error naming the rule for
/// one that is not understood, and for a GLOB that fits none of several tensors.
std::unique_ptr<Compressor> make_per_tensor(std::string_view spec, ContractKind need,
                                            const Ops& ops, const ParameterLayout& layout);

}  // namespace sotto

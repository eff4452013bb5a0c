// What is fuzzed: one function per target, called by libFuzzer (target.cc) and, in every build, on
// the committed corpus (replay.cc). A target aborts when something that must hold does not.
//
// Inputs of the targets named after a family of compressors: variant (1 byte, picks the
// specification), elements (2 bytes), fit (1 byte, odd: the payload is cut or filled up with zeros
// to max_bytes), and the payload. `encode`: variant, then float32 elements. `spec`: the
// specification. `frame`: mode (1 byte; odd: what follows are header fields and payload to be
// sealed), then the bytes. Those of sites: sites.h.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/compress/registry.h>

namespace sotto_fuzz {

struct Target {
  std::string_view name;
  void (*run)(std::string_view name, std::span<const std::byte> input);
};

/// All targets; each family of compressors that the registry has is one, under its name.
std::span<const Target> targets();

/// The specifications that the target of a family tries, in the order of `variant`.
std::vector<std::string> specs_of(std::string_view family);

/// The compressor of `elements` elements, which are a few tensors.
std::unique_ptr<sotto::Compressor> make(std::string_view spec, std::size_t elements,
                                        sotto::ContractKind form = sotto::ContractKind::any);

/// Elements that a payload's target decodes at most.
inline constexpr std::size_t kMostElements = 1024;

}  // namespace sotto_fuzz

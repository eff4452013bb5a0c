// A trained model for other programs: tensors by name and shape, with notes on what goes in and
// what comes out. The format is safetensors (github.com/huggingface/safetensors): eight bytes with
// the length of a header, the header in JSON, then the floats, all little-endian. It holds numbers
// and text alone, and nothing that could be executed.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>

namespace sotto {

/// Text by name; in the header under "__metadata__".
using ModelNotes = std::map<std::string, std::string>;

/// Requires parameters.size() == dimension_of(layout).
std::vector<std::byte> encode_model_file(const ParameterLayout& layout,
                                         std::span<const float> parameters,
                                         const ModelNotes& notes);

/// The parameters in a file's bytes, in the layout's order: tensors of its names and shapes and no
/// others, or one vector of all, whatever it is called, where a file knows of no tensors. Of 32-bit
/// floats, all finite. Fault::malformed says which tensor is wrong.
Result<std::vector<float>> decode_model_file(std::span<const std::byte> bytes,
                                             const ParameterLayout& layout);

}  // namespace sotto

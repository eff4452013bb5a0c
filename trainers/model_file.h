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

namespace sotto {

/// Text by name; in the header under "__metadata__".
using ModelNotes = std::map<std::string, std::string>;

/// Requires parameters.size() == dimension_of(layout).
std::vector<std::byte> encode_model_file(const ParameterLayout& layout,
                                         std::span<const float> parameters,
                                         const ModelNotes& notes);

}  // namespace sotto

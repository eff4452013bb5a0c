// A trained model for other programs: tensors by name and shape, with notes on what goes in and
// what comes out. The format is safetensors (github.com/huggingface/safetensors): eight bytes with
// the length of a header, the header in JSON, then the floats, all little-endian. It holds numbers
// and text alone, and nothing that could be executed.
//
// Tensors may be encoded in fewer bits: such a one has the type U8, as long as its encoding, and
// the text `sotto.encoding` under "__metadata__", in JSON, has {"NAME": {"spec": "quant:4,…",
// "shape": […]}}. The format of an encoding is told where its compressor is declared
// (compress/quant.h, half.h).
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>

namespace sotto {

/// Text by name; in the header under "__metadata__".
using ModelNotes = std::map<std::string, std::string>;

/// Compressors of a file's tensors: a specification by name, of those that are encoded.
using TensorEncodings = std::map<std::string, std::string>;

/// The families of compressors that a file's tensors may be encoded by.
bool encodes_files(std::string_view spec);

/// The encoding of values in such a file: each element rounded to the nearest of what `spec` holds.
/// Requires encodes_files(spec). Throws Error for a specification that is refused.
std::vector<std::byte> encode_tensor(const std::string& spec, std::span<const float> values);

/// Requires parameters.size() == dimension_of(layout), and encodes_files of all `encodings`. Throws
/// Error for a specification that is refused.
std::vector<std::byte> encode_model_file(const ParameterLayout& layout,
                                         std::span<const float> parameters, const ModelNotes& notes,
                                         const TensorEncodings& encodings = {});

/// Tensors with their values.
struct ModelTensors {
  ParameterLayout layout;
  std::vector<float> parameters;
};

/// All tensors in a file's bytes, in the order in which their values stand there. Of 32-bit floats,
/// or encoded, all finite, no tensor empty or over another. Fault::malformed says which tensor is
/// wrong.
Result<ModelTensors> read_model_tensors(std::span<const std::byte> bytes);

/// The parameters in a file's bytes, in the layout's order: tensors of its names and shapes and no
/// others, or one vector of all, whatever it is called, where a file knows of no tensors. Of 32-bit
/// floats, or encoded, all finite. Fault::malformed says which tensor is wrong.
Result<std::vector<float>> decode_model_file(std::span<const std::byte> bytes,
                                             const ParameterLayout& layout);

}  // namespace sotto

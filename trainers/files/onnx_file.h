// A model as an ONNX file (onnx.ai), which other programs run without sotto: rows in the data's own
// units go in, probabilities of the classes or targets in their own units come out.
//
// The file is a protocol buffer, ModelProto of IR version 8 with operator set 13; it is written
// here and read nowhere. Its graph has one input, `features` (rows × features), and one output,
// `probabilities` (rows × classes) or `targets` (rows × targets). Where columns are scaled, the
// input is of 64-bit floats and is scaled in 64 bits, as sotto does it; else of 32-bit floats.
// Parameters keep their names. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <sotto/base/parameter_layout.h>
#include <sotto/trainers/data/dataset.h>
#include <sotto/trainers/files/model_file.h>

namespace sotto {

/// The end of such a file's name.
inline constexpr std::string_view kOnnxFile = ".onnx";

/// The units of a model's inputs and outputs.
struct ModelUnits {
  std::size_t features = 0;
  /// Scaling of each feature; empty: features go in as they are.
  std::vector<FeatureScaling> scaling{};
  /// Scaling of each target; empty: targets come out as they are.
  std::vector<FeatureScaling> target_scaling{};
  std::optional<ImageShape> image{};
  bool regression = false;
};

/// The units of these data.
ModelUnits units_of(const Dataset& data);

/// Throws Error, saying what would do, for a model that is written in no such file: all but
/// softmax, linear, mlp and cnn, and one beyond 2 GiB, which no protocol buffer holds.
void check_onnx(const ParameterLayout& layout, const ModelUnits& units);

/// The file's bytes; `notes` become its metadata. Requires parameters.size() ==
/// dimension_of(layout), and what check_onnx takes.
std::vector<std::byte> encode_onnx_file(const ParameterLayout& layout,
                                        std::span<const float> parameters, const ModelUnits& units,
                                        const ModelNotes& notes);

}  // namespace sotto

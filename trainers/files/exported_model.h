// A model as other programs take it: parameters, and what its inputs and outputs stand for.
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <sotto/base/parameter_layout.h>
#include <sotto/trainers/data/dataset.h>
#include <sotto/trainers/files/model_file.h>
#include <sotto/trainers/files/onnx_file.h>

namespace sotto {

/// Notes on the inputs and outputs of a model of these data: `features`, `columns`, `mean`,
/// `deviation`, `classes`, and of a regression `targets`, `target_mean` and `target_deviation`,
/// lists as JSON (docs/operations.md).
ModelNotes notes_on(const Dataset& data);

/// The bytes of the file at `path`: ONNX where its name ends so, else tensors (model_file.h).
/// Throws Error for a model that the format does not hold. Requires parameters.size() ==
/// dimension_of(layout).
std::vector<std::byte> exported_model(const std::string& path, const ParameterLayout& layout,
                                      std::span<const float> parameters, const ModelUnits& units,
                                      const ModelNotes& notes);

}  // namespace sotto

// Where a run's parameters start, from a file. Thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/parameter_layout.h>
#include <sotto/trainers/model_file.h>

namespace sotto {

/// How the name of a file of tensors (model_file.h) ends; any other file is one of text
/// (parameter_file.h).
inline constexpr std::string_view kTensorFile = ".safetensors";

/// The parameters in the file at `path`. Throws Error naming the file, the place and what was
/// expected: a model of this layout.
std::vector<float> read_start(const std::string& path, const ParameterLayout& layout);

/// What such a file holds for these parameters; `notes` go into a file of tensors.
std::string start_file(const std::string& path, const ParameterLayout& layout,
                       std::span<const float> parameters, const ModelNotes& notes);

}  // namespace sotto

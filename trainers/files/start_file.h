// Reads the initial parameters of a run from a file or from another run's checkpoints. Thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/parameter_layout.h>
#include <sotto/trainers/files/model_file.h>

namespace sotto {

/// The end of the name of a file of tensors (model_file.h); any other file is one of text
/// (parameter_file.h).
inline constexpr std::string_view kTensorFile = ".safetensors";

/// The start of a run.
struct Start {
  std::vector<float> parameters;
  /// State that is not taken over, as text for the user; empty for a file, which has parameters
  /// only.
  std::string left_behind;
};

/// The parameters in the file at `path` or, where that is a folder of checkpoints, the mean of its
/// nodes' models in the newest round that all have whole: for another number of nodes, algorithm or
/// step rule. Throws Error naming the file, the place and what was expected: a model of this
/// layout.
Start read_start(const std::string& path, const ParameterLayout& layout);

/// The contents of such a file for these parameters; `notes` go into a file of tensors.
std::string start_file(const std::string& path, const ParameterLayout& layout,
                       std::span<const float> parameters, const ModelNotes& notes);

}  // namespace sotto

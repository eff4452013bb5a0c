// The models in a folder of checkpoints, for callers that want the numbers without the run: to look
// at them, or to start another run from them.
//
// Faults name the file. Files are read whole, and their contents are bounded by their sizes.
//
// Thread safety: pure functions but for the files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/trainers/files/checkpoint.h>

namespace sotto {

/// The files of all nodes in `folder`, by round, the newest first, and then by rank. Reads no
/// file, so that damaged ones are listed too. Fault::io if the folder does not exist.
Result<std::vector<CheckpointName>> checkpoints_in(const std::string& folder);

/// A node's model, and its weight in the mean of all models (weight_of_model).
struct NodeModel {
  std::vector<float> parameters;
  double weight = 1;
};

/// The model in a checkpoint. Fault::malformed where none is, or where it holds a NaN or an
/// infinity.
Result<NodeModel> model_in(const Checkpoint& checkpoint);

/// The models read from a folder.
struct SavedModel {
  Round round = 0;
  int nodes = 1;
  int averaged = 1;       ///< number of models in the mean
  std::string agreement;  ///< agreement of the run that saved it
  std::vector<float> parameters;
};

/// The mean of all nodes' models, summed in double in rank order as evaluations do, without the
/// nodes that lied in a test. Of `round`, or of the newest round of which all nodes have a whole
/// checkpoint. Fault::malformed, or io where files are missing, says which.
Result<SavedModel> read_mean_model(const std::string& folder, std::optional<Round> round);
/// One node's own model; of its newest whole checkpoint by default.
Result<SavedModel> read_node_model(const std::string& folder, Rank rank,
                                   std::optional<Round> round);

/// How many models a mean is of: "4 nodes", or "3 of 4 nodes" where some lied in a test and are
/// left out. `noun` names the counted things: "node".
std::string averaged_text(const SavedModel& saved, std::string_view noun);

/// A digest of a layout for settings; equal layouts have equal digests.
std::string layout_digest(const ParameterLayout& layout);
/// The value of a setting in what a run agreed on; none: it has no such line.
std::optional<std::string> setting_in(const std::string& agreement, std::string_view name);

}  // namespace sotto

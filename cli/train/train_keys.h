// What --key and --peers make of a run: the keys, and which node of which job this process is.
#pragma once

#include <optional>

#include <sotto/comm/security.h>
#include <sotto/trainers/launcher.h>

#include "train_options.h"

namespace sotto::cli {

/// This process as a node with keys.
struct SecuredNode {
  Security security;
  LaunchedNode place;
  std::string bind;  ///< address to listen on
};

/// Reads both files; none when neither is given. The rank is that of the line with this node's key;
/// the job's size that of the launcher if there is one, of --nodes, or of the list. Throws Error
/// when they contradict each other.
std::optional<SecuredNode> read_secured_node(const TrainOptions& options,
                                             const std::optional<LaunchedNode>& launched);

}  // namespace sotto::cli

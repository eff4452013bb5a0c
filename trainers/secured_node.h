// A process as a node with keys, from the files that the settings `key` and `peers` name. Pure
// functions but for the files that they read; thread-safe.
#pragma once

#include <optional>
#include <string>

#include <sotto/trainers/launcher.h>
#include <sotto/trainers/optimizer_settings.h>

namespace sotto {

/// This process as a node with keys.
struct SecuredNode {
  Security security;
  LaunchedNode place;
  std::string bind;  ///< address to listen on
};

/// Reads the files of `key` and `peers`; none when neither is given. The rank is that of the line
/// with this node's key; the job's size that of the launcher if there is one, of `nodes`, or of the
/// list. Throws Error when they contradict each other.
std::optional<SecuredNode> read_secured_node(const OptimizerSettings& settings,
                                             const std::optional<LaunchedNode>& launched);

}  // namespace sotto

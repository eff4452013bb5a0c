// Which node of which job a process is: as a launcher's variables say, or the files that the
// settings `key` and `peers` name. Pure functions but for what they read; thread-safe.
#pragma once

#include <optional>
#include <string>

#include <sotto/trainers/launch/launcher.h>
#include <sotto/trainers/settings/optimizer_settings.h>

namespace sotto {

/// This process among the nodes of its job.
struct NodePlace {
  /// The node's place; none: nobody says that it is one of several.
  std::optional<LaunchedNode> node;
  std::optional<Security> security;  ///< keys and peers of a node with keys
  std::string bind;                  ///< address to listen on
};

/// Asks a launcher, if `by_launcher`, and reads the files of `key` and `peers`, if they are given.
/// The rank is then that of the line with this node's key; the job's size that of the launcher if
/// there is one, of `nodes`, or of the list. Throws Error when they contradict each other, and when
/// one of the two is missing.
NodePlace find_place(const OptimizerSettings& settings, bool by_launcher);

}  // namespace sotto

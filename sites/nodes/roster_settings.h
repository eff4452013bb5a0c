// The settings of a run whose nodes come and go, as programs give them; what comes of them is
// RosterOptions. Plain values and pure functions, except options_of, which reads a key, and
// default_node_name; thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <sotto/sites/nodes/roster_options.h>

namespace sotto {

/// The numbers of nodes that a run may have.
struct NodeRange {
  std::size_t least = 1;
  std::size_t most = 1;
};

/// Nodes that a run may have, at most, …
inline constexpr std::size_t kMostRosterNodes = 4096;
/// … and one with one model at all nodes, each of which speaks with all others.
inline constexpr std::size_t kMostNodesOfOneModel = 64;

/// What `nodes` takes, in words.
std::string node_range_rule();
/// "4:16", or "8", which is 8:8; no value for any other text, 0, and more than kMostRosterNodes.
std::optional<NodeRange> parse_node_range(std::string_view text);

/// The values of the settings, given or default.
struct RosterSettings {
  std::string nodes;        ///< "MIN:MAX", or one number for both
  std::string seeds;        ///< HOST:PORT with commas between them, or a store; empty: no such run
  std::string name;         ///< this node's name; empty: default_node_name()
  std::string listen;       ///< address to listen on; empty: as DatagramPlace says
  std::string key;          ///< file of the key; empty: no key
  bool insecure = false;    ///< whether plain text is allowed beyond this host
  double leave_within = 5;  ///< longest wait of a node that leaves, in seconds
};

/// Reads the key. Throws Error for a setting that is refused.
RosterOptions options_of(const RosterSettings& settings);

/// A name that no other node has: this host's, what the caller adds (TorchrunNode::worker), and a
/// random number.
std::string default_node_name(std::string_view added = {});

}  // namespace sotto

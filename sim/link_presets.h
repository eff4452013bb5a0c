// Links by name: what lies between two machines, or what a machine's own connection is like, in
// places that people know. Pure functions; thread-safe.
#pragma once

#include <span>
#include <string_view>

#include <sotto/sim/time.h>

namespace sotto {

/// One direction. Figures are round ones, of the order that operators publish;
/// measure your own where it matters.
struct LinkPreset {
  std::string_view name;
  std::string_view summary;
  /// Bandwidth between two hosts or, where of_host, of one host's connection.
  double bytes_per_s = 0;
  SimTime latency = 0;  ///< one way
  SimTime jitter = 0;
  double loss = 0;  ///< share of packets
  /// The bandwidth is that of a host's own connection, either way, which all its peers share.
  bool of_host = false;
};

/// All presets, in the order in which they are listed.
std::span<const LinkPreset> link_presets();

/// The entry called `name`; throws Error listing the names if there is none.
const LinkPreset& link_preset(std::string_view name);

}  // namespace sotto

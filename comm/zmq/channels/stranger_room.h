// How much room a site's listener has for connections of strangers, which have not proved a key
// yet, and what of this host makes it small.
//
// Reads the process's and the kernel's limits; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../socket/listener.h"

namespace sotto::internal {

/// Fewest connections of strangers for which there is room.
inline constexpr std::size_t kLeastStrangers = 64;

/// The limits of the listener of a site whose list names so many peers.
Listener::Limits listener_limits(std::size_t peers);

/// Properties of this host that make the room for connections small, and the way out; lines for the
/// operator.
std::vector<std::string> shortages_of_host();

}  // namespace sotto::internal

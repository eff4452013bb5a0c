// Names of the keys through which the nodes of a run meet in a store: for the session and the
// meetings, which write them, and for tools that watch a run from outside.
//
// Pure functions and constants; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <sotto/base/ids.h>

namespace sotto {

// The last part of a key names its owner; a store that knows its clients refuses the others. Keys
// without such a part are node 0's, and all read them.

/// "TOPIC/3": node 3 sets it, and node 3 and node 0 read it.
std::string node_key(std::string_view topic, Rank node);
/// "TOPIC/3-5": node 3 sets it, for node 5.
std::string node_key_for(std::string_view topic, Rank node, Rank reader);
/// "TOPIC/3-all": node 3 sets it, and all read it.
std::string node_key_for_all(std::string_view topic, Rank node);
/// "TOPIC/any": the node that comes first sets it, and all read it.
std::string first_key(std::string_view topic);

/// Holds the mark that node 0 drew for the session of now (comm/session.h).
inline constexpr std::string_view kSessionKey = "session";
/// The mark in the value of that key; none: it holds none.
std::optional<std::uint64_t> session_mark(std::span<const std::byte> value);
/// The name in the store of a key of the session with this mark.
std::string key_in_session(std::uint64_t mark, std::string_view key);

/// Key in a session: a node gave up, and says why (FaultNotice::give_up).
std::string given_up_key();
/// Key in a session: node 0 writes it when all nodes have come to a barrier
/// (StoreCollectives::barrier).
std::string barrier_key(std::string_view barrier);
/// The barrier right before the first step.
inline constexpr std::string_view kBeginBarrier = "begin";

}  // namespace sotto

// What a scenario's file says of links. Throws Error naming line and key of what is wrong. One
// thread at a time.
#pragma once

#include <string>
#include <string_view>

#include <sotto/sim/network/platform.h>
#include <sotto/sim/time.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// A time that a message may be under way. Throws Error for a longer one.
SimTime parse_latency(const std::string& text);

/// Bytes that may wait for a link. Throws Error for fewer than a packet's.
double parse_queue(const std::string& text);

/// A link as it is written, and what of it is a node's own connection.
struct WrittenLink {
  LinkSpec link;
  double own_bytes_per_s = kUnlimited;
  double own_queue_bytes = kUnlimited;
};

/// The preset or the figures of a link. `key` holds a preset's name, or a table.
WrittenLink read_link(TomlReader& in, std::string_view key);
/// What lies between some nodes, which says nothing of their own connections.
LinkSpec read_link_between(TomlReader& in, std::string_view key);

}  // namespace sotto::study

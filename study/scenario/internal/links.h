// What a scenario's file says of links. Throws Error naming line and key of what is wrong. One
// thread at a time.
#pragma once

#include <string_view>

#include <sotto/sim/network/platform.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// What lies between some nodes, which says nothing of their own connections.
LinkSpec read_link_between(TomlReader& in, std::string_view key);

}  // namespace sotto::study

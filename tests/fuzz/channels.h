// The target of comm/'s channels. `channel`: what a peer says after both have accepted, as
// messages, each behind its length (2 bytes).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace sotto_fuzz {

void hear_channel(std::string_view name, std::span<const std::byte> input);

}  // namespace sotto_fuzz

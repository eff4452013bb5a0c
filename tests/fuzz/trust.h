// The targets of comm/: what an operator's files of keys and peers may hold. The input is the file.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace sotto_fuzz {

void read_key(std::string_view name, std::span<const std::byte> input);
void read_peers(std::string_view name, std::span<const std::byte> input);

}  // namespace sotto_fuzz

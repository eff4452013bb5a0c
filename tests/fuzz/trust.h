// The targets of comm/ and sites/process/: what an operator's files of keys, peers and sites may
// hold. The input is the file; of `site_list`, that of the sites and, behind a byte 0, that of the
// edges between them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace sotto_fuzz {

void read_key(std::string_view name, std::span<const std::byte> input);
void read_peers(std::string_view name, std::span<const std::byte> input);
void read_site_list(std::string_view name, std::span<const std::byte> input);

}  // namespace sotto_fuzz

// The targets of topology/. `graph`: the node count to ask for (1 byte, 0 takes the file's), then
// the text of a CSV file. `topology`: a node count (1 byte), then a specification.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace sotto_fuzz {

void read_graph(std::string_view name, std::span<const std::byte> input);
void name_topology(std::string_view name, std::span<const std::byte> input);

}  // namespace sotto_fuzz

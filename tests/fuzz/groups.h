// The targets of groups/. `node_grid`: a node count (1 byte), then the text of a grid. `rows`: the
// kind of exchange (1 byte, modulo kRowKinds), the elements that the header says (2 bytes), and the
// payload that node 1 sends to node 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sotto_fuzz {

void read_grid(std::string_view name, std::span<const std::byte> input);
void hear_rows(std::string_view name, std::span<const std::byte> input);

/// All-to-all and halo, exact and compressed, and a sum of vectors.
inline constexpr std::uint8_t kRowKinds = 5;
/// The payload that is right for a kind.
std::vector<std::byte> example_rows(std::uint8_t kind);

}  // namespace sotto_fuzz

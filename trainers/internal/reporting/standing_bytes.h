// How a node stands, as bytes for node 0. Pure functions; readers trust nothing.
#pragma once

#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/trainers/result.h>

namespace sotto::internal {

void write_standing(const NodeStanding& standing, ByteBuffer& out);
/// The standing that `node` has written; Fault::malformed unless that is exactly one.
Result<NodeStanding> read_standing(Rank node, std::span<const std::byte> bytes);
/// All nodes' standings, in rank order; Fault::malformed unless each has exactly one.
Result<std::vector<NodeStanding>> read_standings(std::span<const std::vector<std::byte>> all);

}  // namespace sotto::internal

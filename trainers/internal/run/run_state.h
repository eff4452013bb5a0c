// What a node's run keeps and hands over as bytes: its clocks and history in a checkpoint, and its
// standing for node 0. Pure functions; readers trust nothing.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/trainers/result.h>

namespace sotto::internal {

struct RunState {
  double wall_s = 0;
  double compute_s = 0;
  std::vector<HistoryPoint> history;
};

void write_run_state(const RunState& state, ByteBuffer& out);
/// Fault::malformed unless `in` holds exactly one state.
Result<RunState> read_run_state(ByteReader& in);

void write_standing(const NodeStanding& standing, ByteBuffer& out);
/// The standing that `node` has written; Fault::malformed unless that is exactly one.
Result<NodeStanding> read_standing(Rank node, std::span<const std::byte> bytes);
/// All nodes' standings, in rank order; Fault::malformed unless each has exactly one.
Result<std::vector<NodeStanding>> read_standings(std::span<const std::vector<std::byte>> all);
/// Fills edges, time, counters and privacy of `result` from how all nodes stand in the end.
void add_standings(std::span<const NodeStanding> all, RunResult& result);

}  // namespace sotto::internal

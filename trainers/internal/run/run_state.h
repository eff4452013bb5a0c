// What a node's run keeps in a checkpoint, its clocks and history, as bytes, and what its result
// takes from how the nodes stand. Pure functions; readers trust nothing.
#pragma once

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

/// Fills edges, time, counters and privacy of `result` from how all nodes stand in the end.
void add_standings(std::span<const NodeStanding> all, RunResult& result);

}  // namespace sotto::internal

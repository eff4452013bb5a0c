// What a node's run keeps and hands over as bytes: its clocks and history in a checkpoint, and its
// traffic and times for node 0's result. Pure functions; readers trust nothing.
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

struct Summary {
  std::vector<LinkTraffic> traffic;
  DriverTimes times;
  double wall_s = 0;
  double compute_s = 0;
  AlgorithmCounters counters;
  std::optional<PrivacyReport> privacy;
};

void write_summary(const Summary& summary, ByteBuffer& out);
/// Fills edges, time, counters and privacy of `result` from all nodes' summaries, in rank order.
Status add_summaries(std::span<const std::vector<std::byte>> summaries, RunResult& result);

}  // namespace sotto::internal

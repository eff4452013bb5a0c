#include "run_state.h"

#include <algorithm>
#include <cmath>

#include "../reporting/read_count.h"

namespace sotto::internal {
namespace {

constexpr std::size_t kPointBytes = 6 * sizeof(double);

void write_point(const HistoryPoint& point, ByteBuffer& out) {
  out.write(point.round);
  for (const double value :
       {point.time_s, point.loss, point.accuracy, point.consensus_distance, point.bytes_per_node}) {
    out.write(value);
  }
}

HistoryPoint read_point(ByteReader& in) {
  HistoryPoint point;
  point.round = in.read<Round>();
  for (double* value : {&point.time_s, &point.loss, &point.accuracy, &point.consensus_distance,
                        &point.bytes_per_node}) {
    *value = in.read<double>();
  }
  return point;
}

/// The figures of a regression stand behind all points, and only where there are any.
void write_regression(const std::vector<HistoryPoint>& history, ByteBuffer& out) {
  const bool any = std::ranges::any_of(
      history, [](const HistoryPoint& point) { return !std::isnan(point.rmse); });
  for (const HistoryPoint& point : any ? history : std::vector<HistoryPoint>()) {
    out.write(point.r2);
    out.write(point.rmse);
  }
}

void read_regression(ByteReader& in, std::vector<HistoryPoint>& history) {
  for (HistoryPoint& point : history) {
    point.r2 = in.read<double>();
    point.rmse = in.read<double>();
  }
}

}  // namespace

void write_run_state(const RunState& state, ByteBuffer& out) {
  out.write(state.wall_s);
  out.write(state.compute_s);
  out.write(std::uint64_t{state.history.size()});
  for (const HistoryPoint& point : state.history) {
    write_point(point, out);
  }
  write_regression(state.history, out);
}

Result<RunState> read_run_state(ByteReader& in) {
  RunState state;
  state.wall_s = in.read<double>();
  state.compute_s = in.read<double>();
  const std::size_t points = read_count(in, kPointBytes);
  for (std::size_t k = 0; k < points; ++k) {
    state.history.push_back(read_point(in));
  }
  if (in.remaining() > 0) {
    read_regression(in, state.history);
  }
  if (!in.finished()) {
    return Status(Fault::malformed, "the history has another length");
  }
  return state;
}

void add_standings(std::span<const NodeStanding> all, RunResult& result) {
  const auto nodes = static_cast<double>(all.size());
  for (const NodeStanding& standing : all) {
    result.edges.insert(result.edges.end(), standing.traffic.begin(), standing.traffic.end());
    result.time.wall_s += standing.wall_s / nodes;
    result.time.compute_s += standing.compute_s / nodes;
    result.time.algorithm_s += standing.times.algorithm_s / nodes;
    result.time.wait_s += standing.times.wait_s / nodes;
    result.time.slowest_s = std::max(result.time.slowest_s, standing.wall_s);
    result.counters.add(standing.counters);
    if (standing.privacy &&
        (!result.privacy || standing.privacy->epsilon > result.privacy->epsilon)) {
      result.privacy = standing.privacy;
    }
  }
}

}  // namespace sotto::internal

#include "run_state.h"

#include <algorithm>

#include <fmt/format.h>

namespace sotto::internal {
namespace {

constexpr std::size_t kPointBytes = 6 * sizeof(double);
constexpr std::size_t kEdgeBytes = 2 * sizeof(Rank) + 2 * sizeof(std::uint64_t);

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

/// A count of items of `item_bytes` each that the reader can still hold; 0 otherwise.
std::size_t read_count(ByteReader& in, std::size_t item_bytes) {
  const auto count = in.read<std::uint64_t>();
  return count <= in.remaining() / item_bytes ? static_cast<std::size_t>(count) : 0;
}

Result<Summary> read_summary(ByteReader& in) {
  Summary summary;
  const std::size_t edges = read_count(in, kEdgeBytes);
  for (std::size_t k = 0; k < edges; ++k) {
    LinkTraffic edge;
    edge.from = in.read<Rank>();
    edge.to = in.read<Rank>();
    edge.bytes = in.read<std::uint64_t>();
    edge.frames = in.read<std::uint64_t>();
    summary.traffic.push_back(edge);
  }
  summary.times.encode_s = in.read<double>();
  summary.times.wait_s = in.read<double>();
  summary.wall_s = in.read<double>();
  summary.compute_s = in.read<double>();
  summary.counters.saturated = in.read<std::uint64_t>();
  summary.counters.bad_frames = in.read<std::uint64_t>();
  summary.counters.drifted = in.read<std::uint64_t>();
  summary.counters.staleness = in.read<std::uint64_t>();
  summary.counters.most_stale = in.read<std::uint64_t>();
  summary.counters.set_aside = in.read<std::uint64_t>();
  if (in.read<std::uint8_t>() != 0) {
    PrivacyReport& privacy = summary.privacy.emplace();
    privacy.steps = in.read<std::uint64_t>();
    privacy.epsilon = in.read<double>();
    privacy.delta = in.read<double>();
    privacy.steps_left = in.read<std::uint64_t>();
  }
  if (!in.finished()) {
    return Status(Fault::malformed, "a node's summary has another length");
  }
  return summary;
}

}  // namespace

void write_run_state(const RunState& state, ByteBuffer& out) {
  out.write(state.wall_s);
  out.write(state.compute_s);
  out.write(std::uint64_t{state.history.size()});
  for (const HistoryPoint& point : state.history) {
    write_point(point, out);
  }
}

Result<RunState> read_run_state(ByteReader& in) {
  RunState state;
  state.wall_s = in.read<double>();
  state.compute_s = in.read<double>();
  const std::size_t points = read_count(in, kPointBytes);
  for (std::size_t k = 0; k < points; ++k) {
    state.history.push_back(read_point(in));
  }
  if (!in.finished()) {
    return Status(Fault::malformed, "the history has another length");
  }
  return state;
}

void write_summary(const Summary& summary, ByteBuffer& out) {
  out.write(std::uint64_t{summary.traffic.size()});
  for (const LinkTraffic& edge : summary.traffic) {
    out.write(edge.from);
    out.write(edge.to);
    out.write(edge.bytes);
    out.write(edge.frames);
  }
  out.write(summary.times.encode_s);
  out.write(summary.times.wait_s);
  out.write(summary.wall_s);
  out.write(summary.compute_s);
  out.write(summary.counters.saturated);
  out.write(summary.counters.bad_frames);
  out.write(summary.counters.drifted);
  out.write(summary.counters.staleness);
  out.write(summary.counters.most_stale);
  out.write(summary.counters.set_aside);
  out.write(static_cast<std::uint8_t>(summary.privacy.has_value()));
  if (summary.privacy) {
    out.write(summary.privacy->steps);
    out.write(summary.privacy->epsilon);
    out.write(summary.privacy->delta);
    out.write(summary.privacy->steps_left);
  }
}

Status add_summaries(std::span<const std::vector<std::byte>> summaries, RunResult& result) {
  const auto nodes = static_cast<double>(summaries.size());
  for (const auto& bytes : summaries) {
    ByteReader in(bytes);
    const auto summary = read_summary(in);
    if (!summary.ok()) {
      return summary.status();
    }
    result.edges.insert(result.edges.end(), summary->traffic.begin(), summary->traffic.end());
    result.time.wall_s += summary->wall_s / nodes;
    result.time.compute_s += summary->compute_s / nodes;
    result.time.encode_s += summary->times.encode_s / nodes;
    result.time.wait_s += summary->times.wait_s / nodes;
    result.time.slowest_s = std::max(result.time.slowest_s, summary->wall_s);
    result.counters.saturated += summary->counters.saturated;
    result.counters.bad_frames += summary->counters.bad_frames;
    result.counters.drifted += summary->counters.drifted;
    result.counters.staleness += summary->counters.staleness;
    result.counters.set_aside += summary->counters.set_aside;
    result.counters.most_stale = std::max(result.counters.most_stale, summary->counters.most_stale);
    if (summary->privacy &&
        (!result.privacy || summary->privacy->epsilon > result.privacy->epsilon)) {
      result.privacy = summary->privacy;
    }
  }
  return {};
}

}  // namespace sotto::internal

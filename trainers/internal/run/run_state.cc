#include "run_state.h"

#include <algorithm>
#include <cmath>

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

/// A count of items of `item_bytes` each that the reader can still hold; 0 otherwise.
std::size_t read_count(ByteReader& in, std::size_t item_bytes) {
  const auto count = in.read<std::uint64_t>();
  return count <= in.remaining() / item_bytes ? static_cast<std::size_t>(count) : 0;
}

}  // namespace

Result<NodeStanding> read_standing(Rank node, std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  NodeStanding standing;
  standing.node = node;
  standing.round = in.read<Round>();
  const std::size_t edges = read_count(in, kEdgeBytes);
  for (std::size_t k = 0; k < edges; ++k) {
    LinkTraffic edge;
    edge.from = in.read<Rank>();
    edge.to = in.read<Rank>();
    edge.bytes = in.read<std::uint64_t>();
    edge.frames = in.read<std::uint64_t>();
    standing.traffic.push_back(edge);
  }
  standing.times.algorithm_s = in.read<double>();
  standing.times.wait_s = in.read<double>();
  standing.wall_s = in.read<double>();
  standing.compute_s = in.read<double>();
  standing.counters.saturated = in.read<std::uint64_t>();
  standing.counters.bad_frames = in.read<std::uint64_t>();
  standing.counters.drifted = in.read<std::uint64_t>();
  standing.counters.staleness = in.read<std::uint64_t>();
  standing.counters.most_stale = in.read<std::uint64_t>();
  standing.counters.set_aside = in.read<std::uint64_t>();
  standing.counters.other_settings = in.read<std::uint64_t>();
  if (in.read<std::uint8_t>() != 0) {
    standing.counters.mass = in.read<double>();
  }
  if (in.read<std::uint8_t>() != 0) {
    CompressionSample& sample = standing.compression.emplace();
    sample.signal = in.read<double>();
    sample.error = in.read<double>();
    sample.bound = in.read<double>();
  }
  if (in.read<std::uint8_t>() != 0) {
    PrivacyReport& privacy = standing.privacy.emplace();
    privacy.steps = in.read<std::uint64_t>();
    privacy.epsilon = in.read<double>();
    privacy.delta = in.read<double>();
    privacy.steps_left = in.read<std::uint64_t>();
  }
  if (!in.finished()) {
    return Status(Fault::malformed,
                  fmt::format("what node {} tells of itself has another length", node));
  }
  return standing;
}

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

void write_standing(const NodeStanding& standing, ByteBuffer& out) {
  out.write(standing.round);
  out.write(std::uint64_t{standing.traffic.size()});
  for (const LinkTraffic& edge : standing.traffic) {
    out.write(edge.from);
    out.write(edge.to);
    out.write(edge.bytes);
    out.write(edge.frames);
  }
  out.write(standing.times.algorithm_s);
  out.write(standing.times.wait_s);
  out.write(standing.wall_s);
  out.write(standing.compute_s);
  out.write(standing.counters.saturated);
  out.write(standing.counters.bad_frames);
  out.write(standing.counters.drifted);
  out.write(standing.counters.staleness);
  out.write(standing.counters.most_stale);
  out.write(standing.counters.set_aside);
  out.write(standing.counters.other_settings);
  out.write(static_cast<std::uint8_t>(standing.counters.mass.has_value()));
  if (standing.counters.mass) {
    out.write(*standing.counters.mass);
  }
  out.write(static_cast<std::uint8_t>(standing.compression.has_value()));
  if (standing.compression) {
    out.write(standing.compression->signal);
    out.write(standing.compression->error);
    out.write(standing.compression->bound);
  }
  out.write(static_cast<std::uint8_t>(standing.privacy.has_value()));
  if (standing.privacy) {
    out.write(standing.privacy->steps);
    out.write(standing.privacy->epsilon);
    out.write(standing.privacy->delta);
    out.write(standing.privacy->steps_left);
  }
}

Result<std::vector<NodeStanding>> read_standings(std::span<const std::vector<std::byte>> all) {
  std::vector<NodeStanding> standings;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    auto standing = read_standing(static_cast<Rank>(rank), all[rank]);
    if (!standing.ok()) {
      return standing.status();
    }
    standings.push_back(std::move(*standing));
  }
  return standings;
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

#include "standing_bytes.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "read_count.h"

namespace sotto::internal {
namespace {

constexpr std::size_t kEdgeBytes = 2 * sizeof(Rank) + 2 * sizeof(std::uint64_t);

}  // namespace

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

}  // namespace sotto::internal

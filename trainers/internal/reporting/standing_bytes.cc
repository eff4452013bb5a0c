#include "standing_bytes.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "read_count.h"

namespace sotto::internal {
namespace {

constexpr std::size_t kEdgeBytes = 2 * sizeof(Rank) + 2 * sizeof(std::uint64_t);

/// Takes fields to bytes.
struct FieldWriter {
  ByteBuffer& out;

  template <typename T>
  void operator()(const T& field) const {
    out.write(field);
  }
  template <typename T, typename Fields>
  void optional(const std::optional<T>& value, const Fields& fields) const {
    out.write(static_cast<std::uint8_t>(value.has_value()));
    if (value) {
      fields(*value);
    }
  }
};

/// Takes them from there.
struct FieldReader {
  ByteReader& in;

  template <typename T>
  void operator()(T& field) const {
    field = in.read<T>();
  }
  template <typename T, typename Fields>
  void optional(std::optional<T>& value, const Fields& fields) const {
    if (in.read<std::uint8_t>() != 0) {
      fields(value.emplace());
    }
  }
};

/// An edge, and what stands behind the edges, field by field in the order of the bytes.
template <typename Edge, typename Bytes>
void take_edge(Edge& edge, const Bytes& bytes) {
  bytes(edge.from);
  bytes(edge.to);
  bytes(edge.bytes);
  bytes(edge.frames);
}

template <typename Standing, typename Bytes>
void take_sums(Standing& standing, const Bytes& bytes) {
  const auto all = [&bytes](auto&... fields) { (bytes(fields), ...); };
  auto& counters = standing.counters;
  all(standing.times.algorithm_s, standing.times.wait_s, standing.wall_s, standing.compute_s);
  all(counters.saturated, counters.bad_frames, counters.drifted, counters.staleness,
      counters.most_stale, counters.set_aside, counters.other_settings);
  bytes.optional(counters.mass, all);
  bytes.optional(standing.compression,
                 [&all](auto& sample) { all(sample.signal, sample.error, sample.bound); });
  bytes.optional(standing.privacy, [&all](auto& privacy) {
    all(privacy.steps, privacy.epsilon, privacy.delta, privacy.left);
  });
}

}  // namespace

void write_standing(const NodeStanding& standing, ByteBuffer& out) {
  out.write(standing.round);
  out.write(std::uint64_t{standing.traffic.size()});
  for (const LinkTraffic& edge : standing.traffic) {
    take_edge(edge, FieldWriter{out});
  }
  take_sums(standing, FieldWriter{out});
}

Result<NodeStanding> read_standing(Rank node, std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  NodeStanding standing;
  standing.node = node;
  standing.round = in.read<Round>();
  standing.traffic.resize(read_count(in, kEdgeBytes));
  for (LinkTraffic& edge : standing.traffic) {
    take_edge(edge, FieldReader{in});
  }
  take_sums(standing, FieldReader{in});
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

#include <sotto/trainers/result.h>

#include <sotto/trainers/tasks/task.h>

namespace sotto {

void set_quality(HistoryPoint& point, const Evaluation& found) {
  point.loss = found.loss;
  point.accuracy = found.accuracy;
  point.r2 = found.r2;
  point.rmse = found.rmse;
}

std::vector<std::uint64_t> RunResult::bytes_sent_per_node() const {
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(nodes), 0);
  for (const LinkTraffic& edge : edges) {
    sums[static_cast<std::size_t>(edge.from)] += edge.bytes;
  }
  return sums;
}

std::vector<std::uint64_t> RunResult::frames_sent_per_node() const {
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(nodes), 0);
  for (const LinkTraffic& edge : edges) {
    sums[static_cast<std::size_t>(edge.from)] += edge.frames;
  }
  return sums;
}

double sent_bytes(const NodeStanding& node) {
  double bytes = 0;
  for (const LinkTraffic& link : node.traffic) {
    bytes += static_cast<double>(link.bytes);
  }
  return bytes;
}

double allreduce_bytes(int nodes, std::size_t dimension, Round rounds) {
  const double vector = static_cast<double>(dimension) * sizeof(float);
  return 2 * (nodes - 1.0) / nodes * vector * static_cast<double>(rounds);
}

std::optional<CompressionSample> compression_of(std::span<const NodeStanding> nodes) {
  std::optional<CompressionSample> all;
  for (const NodeStanding& node : nodes) {
    if (node.compression) {
      if (!all) {
        all.emplace();
      }
      all->signal += node.compression->signal;
      all->error += node.compression->error;
      all->bound += node.compression->bound;
    }
  }
  return all;
}

}  // namespace sotto

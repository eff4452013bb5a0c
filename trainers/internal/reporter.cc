#include "reporter.h"

#include <cmath>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "run_state.h"

namespace sotto::internal {
namespace {

std::string key_of(Rank node) { return fmt::format("standing/{}", node); }

double sent_by(const NodeStanding& node) {
  double bytes = 0;
  for (const LinkTraffic& link : node.traffic) {
    bytes += static_cast<double>(link.bytes);
  }
  return bytes;
}

}  // namespace

Reporter::Reporter(Observer& observer, Store& store, Rank rank, int nodes)
    : observer_(observer), store_(store), rank_(rank), nodes_(nodes) {}

Reporter::~Reporter() {
  if (!begun_) {
    return;
  }
  observer_.node_ended(rank_);
  if (rank_ == 0) {
    observer_.ended(end_);
  }
}

Status Reporter::begin(const RunStart& start, const std::vector<std::string>& warnings) {
  begun_ = true;
  dimension_ = start.dimension;
  if (rank_ != 0) {
    return {};
  }
  try {
    observer_.began(start);
  } catch (const std::exception& error) {
    return {Fault::io, error.what()};
  }
  for (const std::string& warning : warnings) {
    observer_.warning(warning);
  }
  return {};
}

void Reporter::round_done(Round done) {
  if (rank_ == 0) {
    observer_.round_done(done);
  }
}

void Reporter::publish(const NodeStanding& mine) {
  if (rank_ != 0 && observer_.wants_health()) {
    ByteBuffer note;
    write_standing(mine, note);
    (void)store_.set(key_of(rank_), note.bytes());  // the next may come through
  }
}

void Reporter::report(const NodeStanding& mine, HistoryPoint point) {
  publish(mine);
  if (rank_ != 0) {
    return;
  }
  RunEvaluation evaluation{.point = point};
  evaluation.nodes = observer_.wants_health() ? all_nodes(mine) : std::vector{mine};
  evaluation.compression = compression_of(evaluation.nodes);
  for (const NodeStanding& node : evaluation.nodes) {
    evaluation.point.bytes_per_node += sent_by(node) / static_cast<double>(evaluation.nodes.size());
  }
  evaluation.allreduce_bytes = allreduce_bytes(nodes_, dimension_, point.round);
  if (!std::isnan(point.loss)) {
    observer_.evaluation_began(point.round);
  }
  observer_.evaluated(evaluation);
}

std::vector<NodeStanding> Reporter::all_nodes(const NodeStanding& mine) const {
  std::vector<NodeStanding> nodes{mine};
  for (Rank peer = 1; peer < nodes_; ++peer) {
    const auto note = store_.get(key_of(peer), Deadline::after({}));
    if (!note.ok()) {
      continue;  // it has said nothing yet, or never will
    }
    if (auto standing = read_standing(peer, *note); standing.ok()) {
      nodes.push_back(std::move(*standing));
    } else {
      observer_.warning(standing.status().message());
    }
  }
  return nodes;
}

void Reporter::finish(const NodeStanding& mine, HistoryPoint point) {
  end_ = Status();
  if (rank_ != 0 || !begun_) {
    return;
  }
  report(mine, point);
  for (Rank peer = 1; peer < nodes_; ++peer) {
    (void)store_.remove(key_of(peer));  // the next run removes what is left
  }
}

}  // namespace sotto::internal

#include "run_reporter.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <sotto/comm/run_keys.h>

#include "standing_bytes.h"

namespace sotto::internal {
namespace {

std::string key_of(Rank node) { return node_key("standing", node); }

}  // namespace

RunReporter::RunReporter(const OptimizerOptions& options, Store& store,
                         CompressionWatch compression)
    : observer_(options.observer),
      store_(store),
      rank_(options.rank),
      nodes_(options.nodes),
      every_(options.observer != nullptr ? options.report_every : 0),
      clock_(options.rank, options.observer),
      compression_(std::move(compression)) {}

RunReporter::~RunReporter() {
  if (!begun_) {
    return;
  }
  try {
    observer_->node_ended(rank_);
    if (rank_ == 0) {
      observer_->ended(end_);
    }
  } catch (const std::exception&) {
    return;  // there is nobody left to tell
  }
}

Status RunReporter::begin(const RunStart& start, const std::vector<std::string>& warnings) {
  begun_ = true;
  wall_.go();
  dimension_ = start.dimension;
  measure_next(start.done);
  if (rank_ != 0) {
    if (observer_->wants_health()) {
      publisher_.emplace(store_, key_of(rank_));
    }
    return {};
  }
  try {
    observer_->began(start);
  } catch (const std::exception& error) {
    return {Fault::io, error.what()};
  }
  for (const std::string& warning : warnings) {
    observer_->warning(warning);
  }
  return {};
}

void RunReporter::warn(const std::string& text) {
  if (rank_ == 0 && begun_) {
    observer_->warning(text);
  }
}

void RunReporter::round_done(Round done) {
  if (takes_evaluations()) {
    observer_->round_done(done);
  }
}

void RunReporter::report(const NodeStanding& mine, const Findings& found) {
  measure_next(mine.round);
  if (publisher_) {
    ByteBuffer note;
    write_standing(mine, note);
    publisher_->publish(std::move(note).take());
  }
  if (rank_ != 0) {
    return;
  }
  hear(mine);
  const HistoryPoint point{.round = mine.round,
                           .time_s = wall_.seconds(),
                           .loss = found.loss,
                           .accuracy = found.accuracy,
                           .consensus_distance = found.consensus_distance};
  RunEvaluation evaluation{.point = point};
  evaluation.report = !found.evaluated;
  evaluation.nodes = known_;
  evaluation.complete =
      known_.size() == static_cast<std::size_t>(nodes_) &&
      std::ranges::all_of(known_, [&](const auto& node) { return node.round == point.round; });
  evaluation.compression = compression_of(known_);
  evaluation.allreduce_bytes = 0;
  for (const NodeStanding& node : known_) {
    const double share = 1.0 / static_cast<double>(known_.size());
    evaluation.point.bytes_per_node += share * sent_bytes(node);
    evaluation.allreduce_bytes += share * allreduce_bytes(nodes_, dimension_, node.round);
  }
  if (found.evaluated) {
    observer_->evaluation_began(point.round);
  }
  observer_->evaluated(evaluation);
}

void RunReporter::hear(const NodeStanding& mine) {
  if (deaf_) {
    known_.front() = mine;
    return;
  }
  known_ = {mine};
  for (Rank peer = 1; peer < nodes_ && observer_->wants_health(); ++peer) {
    const auto note = store_.get(key_of(peer), Deadline::after({}));
    if (note.status().fault() == Fault::deadline) {
      continue;  // it has said nothing yet, or never will
    }
    auto standing = note.ok() ? read_standing(peer, *note) : note.status();
    if (!standing.ok()) {
      deaf_ = true;
      observer_->warning(standing.status().message() + "; of other nodes nothing more is reported");
      return;
    }
    known_.push_back(std::move(*standing));
  }
}

void RunReporter::leave(const NodeStanding& mine, std::chrono::milliseconds patience) {
  if (publisher_) {
    report(mine, {});
    publisher_->flush(patience);
  }
}

void RunReporter::finish(const NodeStanding& mine) {
  end_ = Status();
  if (rank_ != 0 || !begun_) {
    return;
  }
  report(mine, {});
  deaf_ = true;
  for (Rank peer = 1; peer < nodes_; ++peer) {
    (void)store_.remove(key_of(peer));  // the next run removes what is left
  }
}

}  // namespace sotto::internal

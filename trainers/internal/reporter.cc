#include "reporter.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "run_state.h"

namespace sotto::internal {
namespace {

std::string key_of(Rank node) { return fmt::format("standing/{}", node); }

}  // namespace

Reporter::Reporter(Observer& observer, Store& store, Rank rank, int nodes)
    : observer_(observer), store_(store), rank_(rank), nodes_(nodes) {}

Reporter::~Reporter() {
  if (!begun_) {
    return;
  }
  try {
    observer_.node_ended(rank_);
    if (rank_ == 0) {
      observer_.ended(end_);
    }
  } catch (const std::exception&) {
    return;  // there is nobody left to tell
  }
}

Status Reporter::begin(const RunStart& start, const std::vector<std::string>& warnings) {
  begun_ = true;
  dimension_ = start.dimension;
  if (rank_ != 0) {
    if (observer_.wants_health()) {
      postbox_.emplace(store_, key_of(rank_));
    }
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

void Reporter::warn(const std::string& text) {
  if (rank_ == 0 && begun_) {
    observer_.warning(text);
  }
}

void Reporter::round_done(Round done) {
  if (rank_ == 0) {
    observer_.round_done(done);
  }
}

void Reporter::report(const NodeStanding& mine, HistoryPoint point, bool evaluated) {
  if (postbox_) {
    ByteBuffer note;
    write_standing(mine, note);
    postbox_->post(std::move(note).take());
  }
  if (rank_ != 0) {
    return;
  }
  hear(mine);
  RunEvaluation evaluation{.point = point};
  evaluation.report = !evaluated;
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
  if (evaluated) {
    observer_.evaluation_began(point.round);
  }
  observer_.evaluated(evaluation);
}

void Reporter::hear(const NodeStanding& mine) {
  if (deaf_) {
    known_.front() = mine;
    return;
  }
  known_ = {mine};
  for (Rank peer = 1; peer < nodes_ && observer_.wants_health(); ++peer) {
    const auto note = store_.get(key_of(peer), Deadline::after({}));
    if (note.status().fault() == Fault::deadline) {
      continue;  // it has said nothing yet, or never will
    }
    auto standing = note.ok() ? read_standing(peer, *note) : note.status();
    if (!standing.ok()) {
      deaf_ = true;
      observer_.warning(standing.status().message() + "; of other nodes nothing more is reported");
      return;
    }
    known_.push_back(std::move(*standing));
  }
}

void Reporter::leave(const NodeStanding& mine, std::chrono::milliseconds patience) {
  if (postbox_) {
    report(mine, {}, false);
    postbox_->flush(patience);
  }
}

void Reporter::finish(const NodeStanding& mine, HistoryPoint point) {
  end_ = Status();
  if (rank_ != 0 || !begun_) {
    return;
  }
  report(mine, point, false);
  deaf_ = true;
  for (Rank peer = 1; peer < nodes_; ++peer) {
    (void)store_.remove(key_of(peer));  // the next run removes what is left
  }
}

}  // namespace sotto::internal

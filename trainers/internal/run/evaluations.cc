#include "evaluations.h"

#include <algorithm>
#include <utility>

#include <sotto/base/digest.h>
#include <sotto/base/durable_file.h>
#include <sotto/trainers/files/parameter_file.h>

#include "../reporting/standing_bytes.h"

namespace sotto::internal {

Status Evaluations::take_average(const AveragedModel& model, Round round, double time_s,
                                 int nodes) {
  const Evaluation found = task_.evaluate(model.parameters);
  HistoryPoint point;
  point.round = round;
  point.time_s = time_s;
  set_quality(point, found);
  point.consensus_distance = model.consensus_distance;
  point.bytes_per_node = model.bytes_per_node;
  if (history_.empty() || history_.back().round != point.round) {
    history_.push_back(point);
  }
  if (observer_ == nullptr) {
    return {};
  }
  RunEvaluation evaluation{.point = point};
  evaluation.allreduce_bytes = allreduce_bytes(nodes, model.parameters.size(), round);
  const bool all_tell =
      std::ranges::none_of(model.notes, [](const auto& note) { return note.empty(); });
  if (observer_->wants_health() && all_tell) {
    auto standings = read_standings(model.notes);
    if (!standings.ok()) {
      return standings.status();
    }
    evaluation.nodes = std::move(*standings);
    evaluation.complete = true;
    evaluation.compression = compression_of(evaluation.nodes);
  }
  observer_->evaluated(evaluation);
  return {};
}

void Evaluations::take_row(std::span<const float> parameters) {
  digests_.push_back(sha256_hex(std::as_bytes(parameters)));
  if (!dump_.empty()) {
    rows_ += parameter_row(parameters);
  }
}

void Evaluations::dump_rows() {
  if (!dump_.empty()) {
    dumped_ = write_durably(dump_, std::as_bytes(std::span(rows_)));
  }
}

void Evaluations::move_into(RunResult& result) {
  result.history = std::move(history_);
  result.final = result.history.back();
  result.parameters_sha256 = std::move(digests_);
  result.dumped = dumped_;
}

}  // namespace sotto::internal

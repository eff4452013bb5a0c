// What node 0 of a whole run finds out about the models: the history, and in the end each model's
// digest and, if wanted, its parameters. Other nodes find nothing. Belongs to one thread.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/trainers/meetings/model_average.h>
#include <sotto/trainers/observer.h>
#include <sotto/trainers/result.h>
#include <sotto/trainers/tasks/task.h>

namespace sotto::internal {

class Evaluations {
 public:
  /// Both must outlive this; `observer` may be null. The final models go to the file `dump`; empty:
  /// nowhere.
  Evaluations(Task& task, Observer* observer, std::string dump)
      : task_(task), observer_(observer), dump_(std::move(dump)) {}

  /// Goes on from the history of a checkpoint.
  void go_on_from(std::vector<HistoryPoint> history) { history_ = std::move(history); }
  const std::vector<HistoryPoint>& history() const { return history_; }

  /// Evaluates the mean of all models after `round`, `time_s` into the training, and tells the
  /// observer. Fault::malformed where a node's note is not its standing.
  Status take_average(const AveragedModel& model, Round round, double time_s, int nodes);
  /// Notes a node's final model; in rank order.
  void take_row(std::span<const float> parameters);
  /// Writes the final models, where they are wanted. A disk that is full takes neither the result
  /// nor the checkpoint away: the result says so.
  void dump_rows();
  /// Moves all into the result; there was an evaluation.
  void move_into(RunResult& result);

 private:
  Task& task_;
  Observer* observer_;
  const std::string dump_;
  std::vector<HistoryPoint> history_;
  std::vector<std::string> digests_;
  std::string rows_;
  Status dumped_;  ///< whether the final models are where they were to be
};

}  // namespace sotto::internal

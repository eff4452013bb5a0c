// Runs set beside each other at an equal expense: of bytes, or of time. Plain values and pure
// functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/study/comparison/finished_run.h>
#include <sotto/study/comparison/repeated_run.h>

namespace sotto::study {

/// What is held equal when runs are compared.
enum class Expense { epochs, bytes, time, virtual_time };

/// Throws Error unless `name` is epochs, bytes or time; `time` is that of this machine, or of a
/// simulation.
Expense parse_expense(std::string_view name, Expense time);

/// A run's state at the expense at which all runs are compared.
struct Standing {
  double round = 0;
  double loss = 0;
  std::optional<double> quality = std::nullopt;  ///< accuracy, or R² of a regression
  bool regression = false;
};

/// The least that any of these runs spent until its last evaluation: bytes a node, or seconds.
/// Those without an evaluation do not count; 0 where none has one.
double common_expense(Expense expense, const std::vector<const FinishedRun*>& runs);

/// The run at that expense, linearly between two entries of its history; none where it had spent
/// more before it was first evaluated, or never was.
std::optional<Standing> standing_at(Expense expense, double amount, const FinishedRun& run);

/// An expense at which runs are set beside each other.
struct Level {
  Expense expense = Expense::epochs;
  double amount = 0;

  std::optional<Standing> of(const FinishedRun& run) const {
    return standing_at(expense, amount, run);
  }
};

/// What the run that spent the least had spent in all.
Level level_of(const std::vector<RepeatedRun>& runs, Expense expense);

}  // namespace sotto::study

// Who watches a run of `sotto train`, as its options say. One thread at a time.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include <sotto/trainers/observer.h>

#include "observe/progress.h"
#include "observe/tell.h"
#include "train_plan.h"

namespace sotto::cli {

struct ObserveOptions {
  std::string progress = "auto";
  std::string log_json;
  std::string tensorboard;
  std::string mllog;
  std::string trace;
  std::string metrics;
};

/// `options` must live as long as the command.
void add_observe_options(CLI::App& command, ObserveOptions& options);

class TrainObservers {
 public:
  /// Makes the files. `report` is the first observer, and must outlive this object. Throws Error
  /// for what cannot be made.
  TrainObservers(const ObserveOptions& options, const Progress& progress, const TrainPlan& plan,
                 Observer& report);

  /// All of them.
  Observer& all() { return all_; }
  /// "trace: FILE" and the like for what was written, and which of it in part.
  std::vector<std::string> outputs() const;

 private:
  template <typename T, typename... Arguments>
  void make(Arguments&&... arguments) {
    made_.push_back(std::make_unique<T>(std::forward<Arguments>(arguments)...));
    all_.add(made_.back().get());
  }

  struct Output {
    std::string line;
    std::atomic<bool> lost = false;  ///< a write failed
  };
  /// Lists an output. What is to be told of it goes the way of any warning, for which what stands
  /// on the terminal makes room.
  Tell list(std::string line);

  std::vector<std::unique_ptr<Observer>> made_;
  std::list<Output> outputs_;
  Observers all_;
};

}  // namespace sotto::cli

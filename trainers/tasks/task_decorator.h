// A task that takes another's gradients in its own way, and is that task otherwise. Thread safety
// and ownership: as Task; it owns the task that it wraps.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include <sotto/trainers/tasks/task.h>

namespace sotto {

class TaskDecorator : public Task {
 public:
  /// Wraps `task`, which is not null.
  explicit TaskDecorator(std::unique_ptr<Task> task) : task_(std::move(task)) {}

  const ParameterLayout& layout() const override { return task_->layout(); }
  void initialize(std::span<float> parameters, std::uint64_t seed) const override {
    task_->initialize(parameters, seed);
  }
  Round rounds_per_epoch() const override { return task_->rounds_per_epoch(); }
  Evaluation evaluate(std::span<const float> parameters) override {
    return task_->evaluate(parameters);
  }

 protected:
  /// The task that is wrapped.
  Task& task() { return *task_; }

 private:
  std::unique_ptr<Task> task_;
};

}  // namespace sotto

#include <sotto/study/train/paced_task.h>

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/compute_spec.h>

namespace sotto::study {
namespace {

class PacedTask final : public Task {
 public:
  PacedTask(std::unique_ptr<Task> task, const ComputeTime& pace, std::uint64_t seed, Rank rank)
      : task_(std::move(task)), pace_(pace), seed_(seed), rank_(rank) {}

  const ParameterLayout& layout() const override { return task_->layout(); }
  void initialize(std::span<float> parameters, std::uint64_t seed) const override {
    task_->initialize(parameters, seed);
  }
  Round rounds_per_epoch() const override { return task_->rounds_per_epoch(); }
  double loss_and_gradient(Round round, std::span<const float> parameters,
                           std::span<float> gradient) override {
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::nanoseconds(draw(pace_, seed_, rank_, round));
    const double loss = task_->loss_and_gradient(round, parameters, gradient);
    std::this_thread::sleep_until(end);
    return loss;
  }
  Evaluation evaluate(std::span<const float> parameters) override {
    return task_->evaluate(parameters);
  }

 private:
  std::unique_ptr<Task> task_;
  ComputeTime pace_;
  std::uint64_t seed_;
  Rank rank_;
};

}  // namespace

ComputeTime parse_pace(const std::string& spec) {
  try {
    return parse_compute_time(spec);
  } catch (const Error& error) {
    throw error.about("gradient_time");
  }
}

std::unique_ptr<Task> make_paced_task(std::unique_ptr<Task> task, const ComputeTime& pace,
                                      std::uint64_t seed, Rank rank) {
  return std::make_unique<PacedTask>(std::move(task), pace, seed, rank);
}

}  // namespace sotto::study

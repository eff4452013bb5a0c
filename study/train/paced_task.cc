#include <sotto/study/train/paced_task.h>

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/compute_spec.h>
#include <sotto/trainers/tasks/task_decorator.h>

namespace sotto::study {
namespace {

class PacedTask final : public TaskDecorator {
 public:
  PacedTask(std::unique_ptr<Task> task, const ComputeTime& pace, std::uint64_t seed, Rank rank)
      : TaskDecorator(std::move(task)), pace_(pace), seed_(seed), rank_(rank) {}

  double loss_and_gradient(Round round, std::span<const float> parameters,
                           std::span<float> gradient) override {
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::nanoseconds(draw(pace_, seed_, rank_, round));
    const double loss = task().loss_and_gradient(round, parameters, gradient);
    std::this_thread::sleep_until(end);
    return loss;
  }

 private:
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

#include <sotto/trainers/tasks/clipped_task.h>

#include <utility>

namespace sotto {

ClippedTask::ClippedTask(std::unique_ptr<SupervisedTask> task, PoissonSampler sampler,
                         double clip_norm, double batch)
    : TaskDecorator(std::move(task)),
      supervised_(static_cast<SupervisedTask&>(this->task())),
      sampler_(std::move(sampler)),
      batch_(batch),
      sum_(dimension(), clip_norm) {}

double ClippedTask::loss_and_gradient(Round round, std::span<const float> parameters,
                                      std::span<float> gradient) {
  const auto sample = sampler_.batch(round);
  sum_.clear();
  double loss = 0;
  for (std::size_t k = 0; k < sample.size(); ++k) {
    loss += supervised_.loss_and_gradient_on(sample.subspan(k, 1), parameters, gradient);
    sum_.add(gradient);
  }
  sum_.divide(batch_, gradient);
  return sample.empty() ? 0 : loss / static_cast<double>(sample.size());
}

}  // namespace sotto

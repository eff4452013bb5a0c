#include <sotto/study/internal/node_data.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/trainers/settings/optimizer_settings.h>
#include <sotto/trainers/tasks/task_decorator.h>

namespace sotto::study {
namespace {

class EndingTask final : public TaskDecorator {
 public:
  EndingTask(std::unique_ptr<Task> task, Round rounds)
      : TaskDecorator(std::move(task)), rounds_(rounds) {}

  double loss_and_gradient(Round round, std::span<const float> parameters,
                           std::span<float> gradient) override {
    if (round < rounds_) {
      return task().loss_and_gradient(round, parameters, gradient);
    }
    std::ranges::fill(gradient, 0.0F);
    return 0;
  }

 private:
  Round rounds_;
};

}  // namespace

std::vector<double> weights_of_nodes(const TrainOptions& options, const TaskFactory& tasks,
                                     bool launched) {
  if (const auto& batches = tasks.options().batches; !batches.empty()) {
    return {batches.begin(), batches.end()};
  }
  if (options.weight != kWeightByExamples) {
    if (!options.weight.empty() && !launched) {
      refuse("weight", options.weight,
             "here all nodes have the options of one command, and would count alike; give "
             "examples");
    }
    return {};
  }
  const auto examples = tasks.examples_per_node();
  if (examples.empty() && tasks.options().deal) {
    refuse("weight", options.weight,
           fmt::format("{} has no examples that could be counted", tasks.data().spec));
  }
  if (examples.empty()) {  // nobody takes a gradient
    return std::vector<double>(static_cast<std::size_t>(tasks.options().nodes), 1.0);
  }
  return {examples.begin(), examples.end()};
}

std::vector<Round> rounds_of_nodes(const TrainOptions& options, const TaskFactory& tasks,
                                   Round rounds) {
  if (options.join.empty()) {
    return {};
  }
  static_cast<void>(parse_join(options.join));
  if (options.rounds) {
    refuse("join", options.join,
           "with " + mention("rounds") +
               " every node takes so many steps, whatever its data: give " + mention("epochs"));
  }
  if (wants_privacy(options)) {
    refuse("join", options.join, "a round without data would cost privacy");
  }
  const auto examples = tasks.examples_per_node();
  if (examples.empty() && tasks.options().deal) {
    refuse("join", options.join,
           fmt::format("{} has no examples that could run out", tasks.data().spec));
  }
  const double all = std::accumulate(examples.begin(), examples.end(), 0.0);
  std::vector<Round> own;
  for (const std::size_t count : examples) {
    const double share = static_cast<double>(count * examples.size()) / all;
    own.push_back(static_cast<Round>(std::ceil(static_cast<double>(rounds) * share)));
  }
  return own;
}

std::unique_ptr<Task> make_ending_task(std::unique_ptr<Task> task, Round rounds) {
  return std::make_unique<EndingTask>(std::move(task), rounds);
}

}  // namespace sotto::study

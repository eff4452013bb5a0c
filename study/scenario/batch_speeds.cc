#include <sotto/study/scenario/batch_speeds.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/train/batch_share.h>

namespace sotto::study {

std::vector<double> batch_speeds(const Scenario& scenario) {
  if (scenario.sampling.clients != nullptr) {
    refuse("batch_share", std::string(kShareBySpeed),
           "clients are drawn for each exchange, each as fast as it is; leave it out");
  }
  std::vector<double> speeds;
  speeds.reserve(scenario.node_specs.size());
  for (const NodeSpec& node : scenario.node_specs) {
    const double seconds = mean_seconds(node.compute);
    if (seconds == 0) {
      refuse("batch_share", std::string(kShareBySpeed),
             fmt::format("gradients of node {} take no time; say how long they take, with "
                         "nodes.gradient",
                         speeds.size()));
    }
    speeds.push_back(1 / seconds);
  }
  const double fastest = std::ranges::max(speeds);
  for (double& speed : speeds) {
    speed = std::max(speed / fastest, kLeastSpeed);
  }
  return speeds;
}

TrainOptions options_of(const Scenario& scenario, const RunSpec& run) {
  TrainOptions options = with_run(scenario.task, run);
  if (options.batch_share == kShareBySpeed) {
    options.batch_share = speeds_text(batch_speeds(scenario));
  }
  return options;
}

std::vector<NodeSpec> shared_node_specs(const Scenario& scenario, const TaskOptions& task) {
  std::vector<NodeSpec> specs = scenario.node_specs;
  for (std::size_t node = 0; node < specs.size(); ++node) {
    specs[node].compute.slowdown *= task.part_of_batch(static_cast<Rank>(node));
  }
  return specs;
}

}  // namespace sotto::study

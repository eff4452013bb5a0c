// A program that watches its own run, against the installed package.
#include <sotto/observe/telemetry.h>
#include <sotto/trainers/optimizer.h>

#include <cstdio>
#include <vector>

int main(int, char** argv) {
  sotto::Telemetry telemetry({.log_json = argv[1], .rank = 0});
  std::vector<float> x(10, 1.0F);
  sotto::OptimizerOptions options;
  options.nodes = 1;
  options.transport = "inproc";
  options.observer = &telemetry;
  sotto::Optimizer optimizer(options, x);
  const std::vector<float> gradient(x.size(), 0.5F);
  for (int step = 0; step < 3; ++step) {
    if (!optimizer.step(gradient).ok()) {
      return 1;
    }
  }
  if (!optimizer.evaluated(0.25).ok() || !optimizer.finish().ok()) {
    return 1;
  }
  std::printf("%s\n", telemetry.outputs().at(0).c_str());
  return 0;
}

// The component torch of the installed package: one step of a model with one parameter.
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <sotto/trainers/torch/distributed_optimizer.h>

int main() {
  sotto::OptimizerOptions options;
  options.algorithm = "allreduce";
  options.transport = "inproc";
  options.nodes = 1;
  options.store = sotto::make_memory_store();
  auto x = torch::ones({2}, torch::requires_grad());
  sotto::torch::DistributedOptimizer optimizer(torch::optim::SGD({x}, 0.5), options);
  optimizer.zero_grad();
  x.sum().backward();
  optimizer.step();
  optimizer.finish();
  return x.eq(0.5).all().item<bool>() ? 0 : 1;
}

// The component torch of the installed package: one step of a model with one parameter, and a
// setting that is refused, with no other header of sotto than the adapter's.
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <sotto/trainers/torch/distributed_optimizer.h>

namespace {

bool refuses_nonsense() {
  try {
    const sotto::torch::DistributedOptimizer optimizer({torch::ones({2}, torch::requires_grad())},
                                                       {.algorithm = "nonsense"});
  } catch (const sotto::Error&) {
    return true;
  }
  return false;
}

}  // namespace

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
  return x.eq(0.5).all().item<bool>() && refuses_nonsense() ? 0 : 1;
}

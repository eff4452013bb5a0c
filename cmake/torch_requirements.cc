// What sotto::torch asks of a libtorch, compiled and linked when sotto is configured.
#include <functional>
#include <string>
#include <vector>

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/ordered_dict.h>
#include <torch/serialize/archive.h>
#include <torch/utils.h>

#include <c10/util/Type.h>

#include "trainers/torch/backward_hooks.h"
#include "trainers/torch/parameter_state.h"

int main() {
  std::vector<float> memory(2);
  const auto parameter = torch::ones({2}, torch::requires_grad());
  parameter.set_data(torch::from_blob(
      memory.data(), {2}, [](void*) {}, torch::kFloat));
  parameter.unsafeGetTensorImpl()->bump_version();
  const sotto::torch::BackwardHooks hooks({parameter}, [](std::size_t) {});
  torch::optim::SGD optimizer({parameter}, 0.5);
  optimizer.state().erase(sotto::torch::state_key(parameter));
  torch::serialize::OutputArchive archive;
  optimizer.param_groups().front().options().serialize(archive);
  optimizer.save(archive);
  return c10::demangle("i") == std::string("int") ? 0 : 1;
}

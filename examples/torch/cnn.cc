// A convolutional network on MNIST, on many nodes: mpirun -np 8 torch_cnn FOLDER [STEPS].
// cnn_plain.cc trains the same alone; `diff cnn_plain.cc cnn.cc` shows what it takes.
#include <cstdio>

#include <torch/torch.h>

#include <sotto/trainers/torch/distributed_optimizer.h>

#include "command_line.h"
#include "mnist_cnn.h"

void train(const char* folder, int steps) {
  const auto [images, tests] = read_mnist(folder);
  torch::manual_seed(1);
  Cnn model;
  const auto sgd = torch::optim::SGDOptions(0.02).momentum(0.9);
  sotto::torch::DistributedOptimizer optimizer(torch::optim::SGD(model->parameters(), sgd));
  torch::manual_seed(2 + static_cast<unsigned>(optimizer.node().options().rank));
  for (int step = 0; step < steps; ++step) {
    const Images batch = images.sample(32);
    optimizer.zero_grad();
    torch::nll_loss(model->forward(batch.pixels), batch.labels).backward();
    optimizer.step();
  }
  optimizer.finish_with_mean();
  if (optimizer.node().options().rank == 0) {
    std::printf("%d steps: accuracy %.2f %%\n", steps, 100 * accuracy(model, tests));
  }
}

int main(int argc, char** argv) { return run_example(argc, argv, "FOLDER", train); }

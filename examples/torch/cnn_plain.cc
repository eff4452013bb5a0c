// A convolutional network on MNIST, in plain libtorch: torch_cnn_plain FOLDER [STEPS]. cnn.cc
// trains the same on many nodes; `diff cnn_plain.cc cnn.cc` shows what that takes.
#include <cstdio>

#include <torch/torch.h>

#include "command_line.h"
#include "mnist_cnn.h"

void train(const char* folder, int steps) {
  const auto [images, tests] = read_mnist(folder);
  torch::manual_seed(1);
  Cnn model;
  const auto sgd = torch::optim::SGDOptions(0.02).momentum(0.9);
  torch::optim::SGD optimizer(model->parameters(), sgd);
  for (int step = 0; step < steps; ++step) {
    const Images batch = images.sample(32);
    optimizer.zero_grad();
    torch::nll_loss(model->forward(batch.pixels), batch.labels).backward();
    optimizer.step();
  }
  std::printf("%d steps: accuracy %.2f %%\n", steps, 100 * accuracy(model, tests));
}

int main(int argc, char** argv) { return run_example(argc, argv, "FOLDER", train); }

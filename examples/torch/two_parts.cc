// A network whose first layers lie at one process and whose last ones at another: mpirun -np 2
// torch_two_parts FOLDER [STEPS]. Node 1 uses the images, node 0 the labels, and both know which
// examples a step has. Rows go in 8 bits when an example is seen first, and as differences of 4
// bits later.
#include <algorithm>
#include <cstdio>

#include <torch/torch.h>

#include <sotto/trainers/torch/row_link.h>

#include "command_line.h"
#include "mnist_cnn.h"

namespace {

constexpr std::int64_t kHidden = 128;
constexpr std::int64_t kExamples = 4096;
constexpr std::int64_t kBatch = 64;

/// The examples of a step: passes over all of them, in one order.
torch::Tensor examples_of(int step) {
  return (torch::arange(kBatch) + step * kBatch).remainder(kExamples);
}

/// Node 1: the images and the first layers.
void train_lower(sotto::torch::RowLink& link, const Images& images, int steps) {
  torch::nn::Sequential lower(torch::nn::Flatten(), torch::nn::Linear(28 * 28, kHidden),
                              torch::nn::ReLU());
  torch::optim::SGD optimizer(lower->parameters(), 0.1);
  for (int step = 0; step < steps; ++step) {
    const torch::Tensor keys = examples_of(step);
    optimizer.zero_grad();
    link.send(lower->forward(images.pixels.index_select(0, keys)), keys).backward();
    optimizer.step();
  }
}

/// Node 0: the labels and the last layers.
void train_upper(sotto::torch::RowLink& link, const Images& images, int steps) {
  torch::nn::Sequential upper(torch::nn::Linear(kHidden, 10), torch::nn::LogSoftmax(1));
  torch::optim::SGD optimizer(upper->parameters(), 0.1);
  double mean = 0;
  for (int step = 0; step < steps; ++step) {
    const torch::Tensor keys = examples_of(step);
    optimizer.zero_grad();
    const torch::Tensor rows = link.receive(keys);
    const auto loss = torch::nll_loss(upper->forward(rows), images.labels.index_select(0, keys));
    loss.backward();
    optimizer.step();
    mean += step >= steps - 10 ? loss.item<double>() / std::min(steps, 10) : 0;
  }
  const sotto::KeyedLinkCounts counts = link.link().counts();
  std::printf("%llu rows in full and %llu as differences, %d steps: loss %.3f\n",
              static_cast<unsigned long long>(counts.first),
              static_cast<unsigned long long>(counts.again), steps, mean);
}

void train(const char* folder, int steps) {
  const auto [images, tests] = read_mnist(folder);
  torch::manual_seed(1);
  sotto::torch::RowLinkOptions options;  // the launcher says which node this is
  options.link = {.from = 1, .to = 0, .width = kHidden, .rows = kBatch, .keys = kExamples};
  sotto::torch::RowLink link(options);
  (link.sends() ? train_lower : train_upper)(link, images, steps);
}

}  // namespace

int main(int argc, char** argv) { return run_example(argc, argv, "FOLDER", train); }

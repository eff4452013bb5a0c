// A network with a layer of experts that lie at different processes: mpirun -np 4 torch_experts
// FOLDER [STEPS]. Each process has its own images of MNIST and two of the eight experts, whose
// parameters nobody else ever sees; the layers around them are the same at all, trained by
// all-reduce.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <sotto/trainers/torch/expert_link.h>

#include "command_line.h"
#include "mnist_cnn.h"

namespace {

constexpr std::int64_t kHidden = 64;
constexpr std::int64_t kExperts = 8;
constexpr std::int64_t kBatch = 32;  // a process

/// What all processes have: the layers around the experts, and the gate.
struct AroundImpl : torch::nn::Module {
  torch::nn::Linear below = register_module("below", torch::nn::Linear(28 * 28, kHidden));
  torch::nn::Linear gate = register_module("gate", torch::nn::Linear(kHidden, kExperts));
  torch::nn::Linear above = register_module("above", torch::nn::Linear(kHidden, 10));
};
TORCH_MODULE(Around);

/// The optimizer's nodes meet at a TCP port; the experts' meet at the next one.
std::string next_port(const std::string& rendezvous) {
  const std::size_t port = rendezvous.rfind(':') + 1;
  return rendezvous.substr(0, port) + std::to_string(std::stoi(rendezvous.substr(port)) + 1);
}

void train(const char* folder, int steps) {
  const auto [images, tests] = read_mnist(folder);
  torch::manual_seed(1);
  Around around;
  sotto::OptimizerOptions all_reduce;  // the launcher says which node this is
  all_reduce.algorithm = "allreduce";
  sotto::torch::DistributedOptimizer optimizer(torch::optim::SGD(around->parameters(), 0.1),
                                               all_reduce);
  const sotto::OptimizerOptions& node = optimizer.node().options();

  sotto::torch::ExpertLinkOptions options;
  options.layer = {.experts = kExperts,
                   .width = kHidden,
                   .tokens = kBatch,
                   .gate = "top:2",
                   .compressor = "quant:8",
                   .gradient_compressor = "quant:8"};
  options.place = {
      .rank = node.rank, .nodes = node.nodes, .rendezvous = next_port(node.rendezvous)};
  sotto::torch::ExpertLink link(options);

  torch::manual_seed(2 + static_cast<unsigned>(node.rank));
  torch::nn::ModuleList experts;
  for (std::size_t e = 0; e < link.own_experts(); ++e) {
    experts->push_back(torch::nn::Linear(kHidden, kHidden));
  }
  // An expert's gradient is a sum over the nodes, each of whose losses is a mean.
  torch::optim::SGD own(experts->parameters(), 0.1 / node.nodes);
  const auto model = [&](const torch::Tensor& pixels) {
    const auto x = torch::relu(around->below->forward(pixels.flatten(1)));
    const auto y = link.forward(x, around->gate->forward(x), [&](std::size_t e, const auto& rows) {
      return torch::relu(experts[e - link.first_expert()]->as<torch::nn::Linear>()->forward(rows));
    });
    return torch::log_softmax(around->above->forward(x + y), 1);
  };

  double mean = 0;
  for (int step = 0; step < steps; ++step) {
    const Images batch = images.sample(kBatch);
    optimizer.zero_grad();
    own.zero_grad();
    const auto loss = torch::nll_loss(model(batch.pixels), batch.labels);
    loss.backward();
    optimizer.step();
    own.step();
    mean += step >= steps - 10 ? loss.item<double>() / std::min(steps, 10) : 0;
  }
  if (node.rank == 0) {
    std::printf("%d steps, %llu bytes of tokens and gradients sent: loss %.3f\n", steps,
                static_cast<unsigned long long>(link.bytes_sent()), mean);
  }
}

}  // namespace

int main(int argc, char** argv) { return run_example(argc, argv, "FOLDER", train); }

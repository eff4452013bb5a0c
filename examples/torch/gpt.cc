// A small GPT on the characters of a text, on many nodes: mpirun -np 8 torch_gpt FILE [STEPS].
// gpt_plain.cc trains the same alone; `diff gpt_plain.cc gpt.cc` shows what it takes.
#include <cstdio>

#include <torch/torch.h>

#include <sotto/trainers/torch/distributed_optimizer.h>

#include "char_gpt.h"
#include "command_line.h"

void train(const char* file, int steps) {
  const auto [text, tests] = read_text(file);
  torch::manual_seed(1);
  Gpt model(text.alphabet);
  sotto::torch::DistributedOptimizer optimizer(torch::optim::AdamW(model->parameters(), 3e-3));
  torch::manual_seed(2 + static_cast<unsigned>(optimizer.node().options().rank));
  torch::optim::StepLR scheduler(optimizer, 100, 0.7);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    model->loss(text.sample(16)).backward();
    optimizer.step();
    scheduler.step();
  }
  optimizer.finish_with_mean();
  if (optimizer.node().options().rank == 0) {
    std::printf("%d steps: loss %.3f\n", steps, test_loss(model, tests));
  }
}

int main(int argc, char** argv) { return run_example(argc, argv, "FILE", train); }

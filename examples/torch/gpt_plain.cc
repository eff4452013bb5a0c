// A small GPT on the characters of a text, in plain libtorch: gpt_plain FILE [STEPS]. gpt.cc trains
// the same on many nodes; `diff gpt_plain.cc gpt.cc` shows what that takes.
#include <cstdio>

#include <torch/torch.h>

#include "char_gpt.h"
#include "command_line.h"

void train(const char* file, int steps) {
  const auto [text, tests] = read_text(file);
  torch::manual_seed(1);
  Gpt model(text.alphabet);
  torch::optim::AdamW optimizer(model->parameters(), 3e-3);
  torch::optim::StepLR scheduler(optimizer, 100, 0.7);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    model->loss(text.sample(16)).backward();
    optimizer.step();
    scheduler.step();
  }
  std::printf("%d steps: loss %.3f\n", steps, test_loss(model, tests));
}

int main(int argc, char** argv) { return run_example(argc, argv, "FILE", train); }

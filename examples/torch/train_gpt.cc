// A GPT of ten million parameters on the characters of a text, trained as people train one, on many
// nodes: mpirun -np 4 torch_train_gpt FILE. Warm-up and cosine, several batches a step, clipping,
// bfloat16, checkpoints, figures. train_gpt_plain.cc does it alone; `diff train_gpt_plain.cc
// train_gpt.cc` shows what it takes.
#include <cstdio>

#include <torch/torch.h>

#include <sotto/observe/telemetry.h>
#include <sotto/trainers/torch/distributed_optimizer.h>

#include "char_gpt.h"
#include "gpt_recipe.h"

void train(const Recipe& recipe) {
  const auto [text, tests] = read_text(recipe.file);
  torch::manual_seed(1);
  Gpt model(text.alphabet, recipe.width, recipe.layers);
  model->to(recipe.bfloat16 ? torch::kBFloat16 : torch::kFloat);
  const auto adamw = torch::optim::AdamWOptions().betas({0.9, 0.95}).weight_decay(0.1);
  sotto::Telemetry telemetry({.tensorboard = recipe.tensorboard, .keep = recipe.resume > 0});
  sotto::OptimizerOptions options;
  options.algorithm = recipe.algorithm.empty() ? options.algorithm : recipe.algorithm;
  options.compressor = recipe.compressor;
  options.observer = &telemetry;
  if (!recipe.bind.empty()) {
    options.bind = recipe.bind;
    options.insecure = true;  // docs/security.md has keys
  }
  sotto::torch::DistributedOptimizer optimizer(torch::optim::AdamW(model->parameters(), adamw),
                                               options, *model);
  const int rank = optimizer.node().options().rank;
  const std::string node = "node-" + std::to_string(rank);
  if (recipe.resume > 0) {
    torch::load(optimizer, recipe.checkpoint(recipe.resume, node));
  }
  for (int step = recipe.resume; step < recipe.steps; ++step) {
    set_rate(optimizer, recipe.rate_at(step));
    torch::manual_seed(static_cast<std::uint64_t>(step) * 1000 + static_cast<std::uint64_t>(rank));
    optimizer.zero_grad();
    for (int pass = 0; pass < recipe.accumulate; ++pass) {
      (model->loss(text.sample(recipe.batch)) / recipe.accumulate).backward();
    }
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    if ((step + 1) % recipe.every == 0 || step + 1 == recipe.steps) {
      double loss = 0;
      optimizer.with_mean([&] {
        loss = test_loss(model, tests);
        if (!recipe.folder.empty() && rank == 0) {
          torch::save(model, recipe.checkpoint(step + 1, "model"));
        }
      });
      optimizer.evaluated(loss);
      if (rank == 0) {
        std::printf("step %d: loss %.3f\n", step + 1, loss);
        std::fflush(stdout);
      }
      if (!recipe.folder.empty()) {
        torch::save(optimizer, recipe.checkpoint(step + 1, node));
      }
      if (loss <= recipe.until) {
        break;
      }
    }
  }
  optimizer.finish();
}

int main(int argc, char** argv) { return run_recipe(argc, argv, train); }

// A GPT of ten million parameters on the characters of a text, trained as people train one, in
// plain libtorch: warm-up and cosine, several batches a step, clipping, bfloat16, checkpoints.
// train_gpt.cc does it on many nodes; `diff train_gpt_plain.cc train_gpt.cc` shows what that takes.
#include <cstdio>

#include <torch/torch.h>

#include "char_gpt.h"
#include "gpt_recipe.h"

void train(const Recipe& recipe) {
  const auto [text, tests] = read_text(recipe.file);
  torch::manual_seed(1);
  Gpt model(text.alphabet, recipe.width, recipe.layers);
  model->to(recipe.bfloat16 ? torch::kBFloat16 : torch::kFloat);
  const auto adamw = torch::optim::AdamWOptions().betas({0.9, 0.95}).weight_decay(0.1);
  torch::optim::AdamW optimizer(model->parameters(), adamw);
  if (recipe.resume > 0) {
    torch::load(model, recipe.checkpoint(recipe.resume, "model"));
    torch::load(optimizer, recipe.checkpoint(recipe.resume, "optimizer"));
  }
  for (int step = recipe.resume; step < recipe.steps; ++step) {
    set_rate(optimizer, recipe.rate_at(step));
    torch::manual_seed(static_cast<std::uint64_t>(step));
    optimizer.zero_grad();
    for (int pass = 0; pass < recipe.accumulate; ++pass) {
      (model->loss(text.sample(recipe.batch)) / recipe.accumulate).backward();
    }
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    if ((step + 1) % recipe.every == 0 || step + 1 == recipe.steps) {
      const double loss = test_loss(model, tests);
      std::printf("step %d: loss %.3f\n", step + 1, loss);
      std::fflush(stdout);
      if (!recipe.folder.empty()) {
        torch::save(model, recipe.checkpoint(step + 1, "model"));
        torch::save(optimizer, recipe.checkpoint(step + 1, "optimizer"));
      }
      if (loss <= recipe.until) {
        break;
      }
    }
  }
}

int main(int argc, char** argv) { return run_recipe(argc, argv, train); }

// A small GPT on the characters of a text at one of several sites that come and go: site_gpt FILE
// SITE.toml NUMBER OF. Each site trains on its part of the text, by AdamW of libtorch's, whose
// memory is in the site's state. docs/own_models.md has it step by step.
#include <cstdio>
#include <memory>

#include <torch/torch.h>

#include <sotto/observe/site_outputs.h>
#include <sotto/sites/nodes/report/print_events.h>
#include <sotto/sites/torch/site_optimizer.h>
#include <sotto/study/site/site_file.h>

#include "char_gpt.h"
#include "site_program.h"

void train(const char* text_file, const char* file, Part part) {
  const auto [all, tests] = read_text(text_file);
  const Text text = {part.cut(all.symbols), all.alphabet};
  torch::manual_seed(1);  // sites begin with equal models
  Gpt model(text.alphabet);
  const sotto::SiteSettings settings = sotto::study::read_site_file(file);
  sotto::SiteOptions options = options_of(settings);
  options.stop = &stop;
  sotto::SiteOutputs outputs(settings.outputs, sotto::print_events(stderr));
  outputs.attach(options);
  sotto::torch::SiteOptimizer optimizer(
      std::make_unique<torch::optim::AdamW>(model->parameters(), 3e-3), options, state_of(settings),
      model->named_parameters(), outputs.listener());
  optimizer.connect();
  while (!optimizer.site().over()) {
    torch::manual_seed(part.seed(optimizer.site()));
    optimizer.zero_grad();
    const auto loss = model->loss(text.sample(16));
    loss.backward();
    const auto done = optimizer.step(loss.item<double>());
    print_round(done, loss.item<double>());
  }
  optimizer.finish();
  std::printf("round %llu: test loss %.3f\n",
              static_cast<unsigned long long>(optimizer.site().round()), test_loss(model, tests));
}

int main(int argc, char** argv) { return run_site_program(argc, argv, "FILE", train); }

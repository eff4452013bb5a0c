// A convolutional network on MNIST at one of several sites that come and go: site_cnn FOLDER
// SITE.toml NUMBER OF. docs/own_models.md has it step by step.
#include <cstdio>

#include <torch/torch.h>

#include <sotto/observe/site_outputs.h>
#include <sotto/sites/nodes/report/print_events.h>
#include <sotto/sites/torch/site_optimizer.h>
#include <sotto/study/site/site_file.h>

#include "mnist_cnn.h"
#include "site_program.h"

void train(const char* folder, const char* file, Part part) {
  const auto [all, tests] = read_mnist(folder);
  const Images images = {part.cut(all.pixels), part.cut(all.labels)};
  torch::manual_seed(1);  // sites begin with equal models
  Cnn model;
  const sotto::SiteSettings settings = sotto::study::read_site_file(file);
  sotto::SiteOptions options = options_of(settings);
  options.stop = &stop;
  sotto::SiteOutputs outputs(settings.outputs, sotto::print_events(stderr));
  outputs.attach(options);
  sotto::torch::SiteOptimizer optimizer(model->named_parameters(), options, state_of(settings),
                                        outputs.listener());
  optimizer.connect();
  while (!optimizer.site().over()) {
    torch::manual_seed(part.seed(optimizer.site()));
    const Images batch = images.sample(32);
    optimizer.zero_grad();
    const auto loss = torch::nll_loss(model->forward(batch.pixels), batch.labels);
    loss.backward();
    const auto done = optimizer.step(loss.item<double>());
    print_round(done, loss.item<double>());
  }
  optimizer.finish();
  std::printf("round %llu: accuracy %.2f %%\n",
              static_cast<unsigned long long>(optimizer.site().round()),
              100 * accuracy(model, tests));
}

int main(int argc, char** argv) { return run_site_program(argc, argv, "FOLDER", train); }

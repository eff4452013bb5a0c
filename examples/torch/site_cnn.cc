// A convolutional network on MNIST at one of several sites that come and go: site_cnn FOLDER
// SITE.toml NUMBER OF. The site trains on its NUMBER-th of OF parts of the images, until its rounds
// are over or SIGTERM ends it; started again, it goes on. docs/own_models.md has it step by step.
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string_view>

#include <torch/torch.h>

#include <sotto/sites/torch/site_optimizer.h>
#include <sotto/study/site/site_file.h>

#include "mnist_cnn.h"

namespace {

std::atomic<bool> stop = false;

std::int64_t number_in(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The part of the images that is this site's own.
Images part_of(const Images& all, std::int64_t number, std::int64_t of) {
  const auto size = all.labels.size(0) / of;
  const auto first = (number - 1) * size;
  return {all.pixels.slice(0, first, first + size), all.labels.slice(0, first, first + size)};
}

void train(const char* folder, const char* file, std::int64_t number, std::int64_t of) {
  const auto [all, tests] = read_mnist(folder);
  const Images images = part_of(all, number, of);
  torch::manual_seed(1);  // sites begin with equal models
  Cnn model;
  const sotto::SiteSettings settings = sotto::study::read_site_file(file);
  sotto::SiteOptions options = options_of(settings);
  options.stop = &stop;
  sotto::torch::SiteOptimizer optimizer(model->named_parameters(), options, settings.state);
  optimizer.connect();
  while (!optimizer.site().over()) {
    torch::manual_seed(static_cast<std::uint64_t>(number) + 1000 * optimizer.site().next_step());
    const Images batch = images.sample(32);
    optimizer.zero_grad();
    const auto loss = torch::nll_loss(model->forward(batch.pixels), batch.labels);
    loss.backward();
    const auto done = optimizer.step(loss.item<double>());
    if (done.exchanged && done.round % 20 == 0) {
      std::printf("round %llu: loss %.3f\n", static_cast<unsigned long long>(done.round),
                  loss.item<double>());
      std::fflush(stdout);
    }
  }
  optimizer.finish();
  std::printf("round %llu: accuracy %.2f %%\n",
              static_cast<unsigned long long>(optimizer.site().round()),
              100 * accuracy(model, tests));
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = argc == 5 ? number_in(argv[3]) : 0;
  const auto of = argc == 5 ? number_in(argv[4]) : 0;
  if (number < 1 || number > of) {
    std::fprintf(stderr, "usage: %s FOLDER SITE.toml NUMBER OF\n", argv[0]);
    return 2;
  }
  std::signal(SIGTERM, [](int) { stop = true; });
  try {
    train(argv[1], argv[2], number, of);
    return 0;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return 1;
  }
}

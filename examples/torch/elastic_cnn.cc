// A convolutional network on MNIST, trained by all-reduce on nodes that come and go:
// torch_elastic_cnn FOLDER STEPS MIN:MAX SEED[,SEED…] [NAME]. Start it as often as you like, here
// or elsewhere, with the same words and another NAME: training begins when MIN nodes are there. The
// node that gets the first SEED, HOST:PORT, begins the run. Kill any of three or more, start
// others: those that live go on. SIGTERM lets one leave in good order. docs/epochs.md says more.
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <torch/torch.h>

#include <sotto/sites/nodes/report/print_events.h>
#include <sotto/sites/nodes/roster_settings.h>
#include <sotto/sites/torch/elastic_optimizer.h>

#include "mnist_cnn.h"

namespace {

std::atomic<bool> stop = false;
std::atomic<bool> haste = false;

struct Words {
  const char* folder;
  std::uint64_t steps = 0;
  sotto::RosterSettings roster;
};

sotto::ElasticOptions options_for(const Words& words) {
  sotto::ElasticOptions options;
  options.name = words.roster.name;
  options.roster = sotto::options_of(words.roster);
  options.rounds = words.steps;
  options.stop = &stop;
  options.haste = &haste;
  options.wait_limit = std::chrono::minutes(2);  // e.g. where the others have ended
  return options;
}

void train(const Words& words) {
  const auto [images, tests] = read_mnist(words.folder);
  torch::manual_seed(1);
  Cnn model;
  sotto::torch::ElasticOptimizer optimizer(
      std::make_unique<torch::optim::Adam>(model->parameters(), 0.002), options_for(words),
      model->named_parameters(), sotto::print_events(stderr));
  optimizer.connect();
  std::printf("%s takes part\n", words.roster.name.c_str());
  std::fflush(stdout);
  const auto own = std::hash<std::string>()(words.roster.name);
  while (!optimizer.node().over()) {
    torch::manual_seed(own + optimizer.node().next_step());  // other examples at each node
    const Images batch = images.sample(32);
    optimizer.zero_grad();
    const auto loss = torch::nll_loss(model->forward(batch.pixels), batch.labels);
    loss.backward();
    const auto done = optimizer.step(loss.item<double>());
    if (done.round % 20 == 0) {
      std::printf("step %llu: loss %.3f\n", static_cast<unsigned long long>(done.round),
                  loss.item<double>());
      std::fflush(stdout);
    }
  }
  optimizer.finish();
  std::printf("step %llu: accuracy %.2f %%\n",
              static_cast<unsigned long long>(optimizer.node().round()),
              100 * accuracy(model, tests));
}

}  // namespace

int main(int argc, char** argv) {
  Words words{.folder = argc > 1 ? argv[1] : "", .steps = 0, .roster = {}};
  const std::string_view steps = argc > 2 ? argv[2] : "";
  std::from_chars(steps.data(), steps.data() + steps.size(), words.steps);
  if (argc < 5 || argc > 6 || words.steps == 0) {
    std::fprintf(stderr, "usage: %s FOLDER STEPS MIN:MAX SEED[,SEED...] [NAME]\n", argv[0]);
    return 2;
  }
  words.roster.nodes = argv[3];
  words.roster.seeds = argv[4];
  words.roster.name = argc > 5 ? argv[5] : sotto::default_node_name();
  std::signal(SIGTERM, [](int) { haste = stop.exchange(true); });  // a second one hastens
  try {
    train(words);
    return 0;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return 1;
  }
}

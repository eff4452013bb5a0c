// A libtorch program whose nodes come and go, for bench/kills/epoch_kills.py: the network of
// examples/torch/elastic_cnn.cc on MNIST, with the options and the files of `sotto train` that the
// script gives and reads.
//   build/bench/torch_member --data FOLDER --name a --nodes 2:32 --seeds HOST:PORT --log-json FILE
// Torch has one thread in each process, as there are more processes than processors.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <sotto/sites/nodes/report/event_json.h>
#include <sotto/sites/nodes/roster_settings.h>
#include <sotto/sites/torch/elastic_optimizer.h>

#include "examples/torch/mnist_cnn.h"

namespace {

std::atomic<bool> stop = false;

constexpr std::int64_t kTested = 500;  // images: an evaluation is to be short

struct Request {
  std::string data;
  std::string log;
  std::string result;
  std::string listen;
  std::int64_t batch = 8;
  sotto::Round rounds = 0;
  sotto::Round eval_every = 100;
  sotto::RosterSettings roster;
};

/// Appends a line for each event.
class EventFile {
 public:
  explicit EventFile(const std::string& path) : out_(path, std::ios::app) {}
  void operator()(const sotto::SiteEvent& event) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    out_ << sotto::event_json(event, std::chrono::duration<double>(now).count()) << '\n'
         << std::flush;
  }

 private:
  std::ofstream out_;
};

sotto::ElasticOptions options_for(const Request& request) {
  sotto::ElasticOptions options;
  options.name = request.roster.name;
  options.listen = request.listen;
  options.roster = sotto::options_of(request.roster);
  options.rounds = request.rounds;
  options.stop = &stop;
  return options;
}

/// Loss and accuracy over the first test images.
sotto::Evaluation evaluate(Cnn& model, const Images& tests) {
  const torch::NoGradGuard no_grad;
  const auto output = model->forward(tests.pixels);
  return {.loss = torch::nll_loss(output, tests.labels).item<double>(),
          .accuracy = accuracy(model, tests)};
}

void write_result(const Request& request, const sotto::ElasticOptimizer& node) {
  const sotto::SiteResult result = node.result();
  nlohmann::ordered_json json = {{"round", node.round()},
                                 {"parameters_sha256", result.parameters_sha256},
                                 {"history", nlohmann::ordered_json::array()}};
  for (const sotto::HistoryPoint& point : result.history) {
    json["history"].push_back({{"round", point.round}, {"loss", point.loss}});
  }
  std::ofstream(request.result) << json << '\n';
}

void train(const Request& request) {
  torch::set_num_threads(1);
  const auto [images, all_tests] = read_mnist(request.data);
  const Images tests = {all_tests.pixels.slice(0, 0, kTested),
                        all_tests.labels.slice(0, 0, kTested)};
  torch::manual_seed(1);
  Cnn model;
  EventFile log(request.log);
  sotto::torch::ElasticOptimizer optimizer(
      std::make_unique<torch::optim::Adam>(model->parameters(), 0.001), options_for(request),
      sotto::torch::NamedParameters(), [&log](const sotto::SiteEvent& event) { log(event); });
  optimizer.connect();
  const auto own = std::hash<std::string>()(request.roster.name);
  sotto::Round evaluated = optimizer.node().round();
  while (!optimizer.node().over()) {
    torch::manual_seed(own + optimizer.node().round());  // other examples at each node
    const Images batch = images.sample(request.batch);
    optimizer.zero_grad();
    const auto loss = torch::nll_loss(model->forward(batch.pixels), batch.labels);
    loss.backward();
    const sotto::Round round = optimizer.step(loss.item<double>()).round;
    if (round / request.eval_every > evaluated / request.eval_every) {
      evaluated = round;
      optimizer.node().evaluated(evaluate(model, tests));
    }
  }
  optimizer.finish();
  write_result(request, optimizer.node());
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  CLI::App app{"One node of a libtorch program whose nodes come and go"};
  app.add_option("--data", request.data, "Folder of MNIST")->required();
  app.add_option("--name", request.roster.name, "The node's name")->required();
  app.add_option("--nodes", request.roster.nodes, "MIN:MAX")->required();
  app.add_option("--seeds", request.roster.seeds, "HOST:PORT[,HOST:PORT…]")->required();
  app.add_option("--listen", request.listen, "HOST:PORT");
  app.add_option("--batch", request.batch, "Images of a gradient")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--rounds", request.rounds, "Steps of the run; 0: it goes on");
  app.add_option("--eval-every", request.eval_every, "Steps between two evaluations")
      ->check(CLI::Range(sotto::Round{1}, sotto::Round{1'000'000}))
      ->capture_default_str();
  app.add_option("--log-json", request.log, "File for events")->required();
  app.add_option("--json", request.result, "File for the result")->required();
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGTERM, [](int) { stop = true; });
  try {
    train(request);
    return 0;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "torch_member: %s\n", exception.what());
    return 1;
  }
}

// What a step of sotto::torch costs beside torch's own: processor time of both, in turns.
//   build/bench/torch_overhead [--width 384] [--layers 6] [--repeats 15] [--json FILE]
// The model is the examples' GPT, by default of 10.7 million parameters, its optimizer AdamW, its
// text noise, a step two batches as in train_gpt. Nodes are threads of this process, so that the
// processor time is that of all that they do: gradient, step, encoding, talking, decoding. Torch
// has one thread of its own in each.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <sotto/base/start_threads.h>
#include <sotto/comm/stores.h>
#include <sotto/trainers/torch/distributed_optimizer.h>

#include "bench/support/quantile.h"
#include "examples/torch/char_gpt.h"

namespace {

struct Request {
  int width = 384;
  int layers = 6;
  int rows = 8;
  int passes = 2;
  int repeats = 15;
  std::string json;
};

double processor_s() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Nodes that take steps together, each in a thread of its own.
class Crew {
 public:
  /// `make` makes the optimizer of a node; called in the nodes' order.
  using Make = std::function<std::unique_ptr<torch::optim::Optimizer>(Gpt& model, int node)>;
  Crew(const Request& request, const Text& text, int nodes, const Make& make)
      : request_(request), text_(text) {
    for (int node = 0; node < nodes; ++node) {
      torch::manual_seed(1);
      models_.emplace_back(text.alphabet, request.width, request.layers);
      optimizers_.push_back(make(models_.back(), node));
    }
  }

  /// Seconds of processor that a step takes a node.
  double step() {
    const double begin = processor_s();
    sotto::run_side_by_side(models_.size(), "nodes", [this](std::size_t node) {
      take_step(models_[node], *optimizers_[node]);
    });
    return (processor_s() - begin) / static_cast<double>(models_.size());
  }

 private:
  void take_step(Gpt& model, torch::optim::Optimizer& optimizer) {
    torch::set_num_threads(1);
    if (auto* node = dynamic_cast<sotto::torch::DistributedOptimizer*>(&optimizer)) {
      node->zero_grad();
    } else {
      optimizer.zero_grad();
    }
    for (int pass = 0; pass < request_.passes; ++pass) {
      (model->loss(text_.sample(request_.rows)) / request_.passes).backward();
    }
    optimizer.step();
  }

  const Request& request_;
  const Text& text_;
  std::vector<Gpt> models_;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers_;
};

struct Row {
  std::string name;
  Crew plain;
  Crew ours;
  std::vector<double> plain_s{};
  std::vector<double> ours_s{};
};

std::vector<double> ratios_of(const Row& row) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < row.ours_s.size(); ++i) {
    ratios.push_back(row.ours_s[i] / row.plain_s[i]);
  }
  return ratios;
}

Text noise() {
  torch::manual_seed(5);
  return {torch::randint(65, {100'000}, torch::kLong), 65};
}

Row row_of(const Request& request, const Text& text, int nodes, const std::string& algorithm,
           const std::string& compressor) {
  const auto adamw = [](Gpt& model) {
    return torch::optim::AdamW(model->parameters(), torch::optim::AdamWOptions(1e-4));
  };
  const auto plain = [adamw](Gpt& model, int) {
    return std::make_unique<torch::optim::AdamW>(adamw(model));
  };
  sotto::OptimizerOptions options;
  options.algorithm = algorithm;
  options.compressor = compressor;
  options.transport = "inproc";
  options.nodes = nodes;
  options.store = sotto::make_memory_store();
  const auto ours = [adamw, options](Gpt& model, int node) mutable {
    options.rank = node;
    return std::make_unique<sotto::torch::DistributedOptimizer>(adamw(model), options);
  };
  return {
      .name = fmt::format("{} node{}, {} {}", nodes, nodes == 1 ? "" : "s", algorithm, compressor),
      .plain = Crew(request, text, nodes, plain),
      .ours = Crew(request, text, nodes, ours)};
}

void measure(const Request& request) {
  torch::set_num_threads(1);
  const Text text = noise();
  nlohmann::json runs = nlohmann::json::array();
  fmt::print("{:<28} {:>12} {:>12} {:>8}  range\n", "AdamW", "torch alone", "sotto", "ratio");
  for (const auto& [nodes, algorithm, compressor] :
       {std::tuple(1, "allreduce", ""), std::tuple(1, "dpsgd", ""), std::tuple(2, "allreduce", ""),
        std::tuple(2, "dcd", "quant:8")}) {
    Row row = row_of(request, text, nodes, algorithm, compressor);
    row.plain.step();  // memory is taken, and nodes meet
    row.ours.step();
    for (int repeat = 0; repeat < request.repeats; ++repeat) {
      // The second of a pair finds the caches and the clock rate that the first left.
      if (repeat % 2 == 0) {
        row.plain_s.push_back(row.plain.step());
        row.ours_s.push_back(row.ours.step());
      } else {
        row.ours_s.push_back(row.ours.step());
        row.plain_s.push_back(row.plain.step());
      }
    }
    const auto ratios = ratios_of(row);
    const auto [low, high] = std::ranges::minmax(ratios);
    fmt::print("{:<28} {:>10.1f}ms {:>10.1f}ms {:>8.3f}  {:.3f} … {:.3f}\n", row.name,
               1e3 * sotto::bench::median(row.plain_s), 1e3 * sotto::bench::median(row.ours_s),
               sotto::bench::median(ratios), low, high);
    std::fflush(stdout);
    runs.push_back(
        {{"name", row.name},
         {"plain_s", row.plain_s},
         {"sotto_s", row.ours_s},
         {"ratio", {{"median", sotto::bench::median(ratios)}, {"min", low}, {"max", high}}}});
  }
  if (!request.json.empty()) {
    std::ofstream out(request.json);
    out << nlohmann::json({{"width", request.width}, {"layers", request.layers}, {"runs", runs}})
               .dump(2)
        << '\n';
    if (!out.flush()) {
      throw std::runtime_error("--json: cannot write " + request.json);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  CLI::App app("The cost of a step of sotto::torch beside torch's own", "torch_overhead");
  app.add_option("--width", request.width, "Of the GPT")->check(CLI::Range(4, 4096));
  app.add_option("--layers", request.layers, "Of the GPT")->check(CLI::Range(1, 64));
  app.add_option("--rows", request.rows, "Of 64 characters, in a batch")
      ->check(CLI::Range(1, 4096));
  app.add_option("--passes", request.passes, "Batches of a step")->check(CLI::Range(1, 1000));
  app.add_option("--repeats", request.repeats, "Pairs of steps")->check(CLI::Range(1, 10'000));
  app.add_option("--json", request.json, "FILE");
  CLI11_PARSE(app, argc, argv);
  try {
    measure(request);
    return 0;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "torch_overhead: %s\n", fault.what());
    return 1;
  }
}

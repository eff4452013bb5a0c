// What a step of training costs on a GPU beside its computing: two nodes, threads of this process
// with a stream each on one device, that exchange over inproc while kernels of the caller's go on.
// Prints JSON: the time of a step over that of computing alone.
//
// Computing is so many passes over a vector of the trainer's own that it takes about ten times as
// long as an exchange with nothing beside it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <sotto/base/error.h>
#include <sotto/compress/cuda/accelerator.h>
#include <sotto/kernels/cuda/memory.h>
#include <sotto/kernels/cuda/ops.h>
#include <sotto/kernels/cuda/queue.h>
#include <sotto/trainers/optimizer.h>

namespace {

using namespace sotto;

constexpr int kNodes = 2;

struct Job {
  std::size_t elements = std::size_t{1} << 24U;
  int steps = 50;
  std::string algorithm = "dcd";
  std::string compressor = "quant:8";
};

void expect(const Status& status) {
  if (!status.ok()) {
    throw Error(status.message());
  }
}

/// One node: a model, a gradient, and what stands for computing it.
class Trainer {
 public:
  Trainer(const Job& job, Rank rank, std::shared_ptr<Store> store)
      : memory_(3 * job.elements * sizeof(float)),
        x_(part(job, 0)),
        gradient_(part(job, 1)),
        load_(part(job, 2)) {
    for (const auto vector : {x_, gradient_, load_}) {
      cuda::fill(1e-3F, vector, stream_.stream());
    }
    OptimizerOptions options;
    options.algorithm = job.algorithm;
    options.compressor = job.compressor;
    options.transport = "inproc";
    options.nodes = kNodes;
    options.rank = rank;
    options.store = std::move(store);
    options.buckets = 1;
    options.accelerator = cuda::make_accelerator(stream_.stream());
    optimizer_ = std::make_unique<Optimizer>(std::move(options), x_);
  }

  /// Seconds a step of `passes` over the load, with an exchange where `exchanging`.
  double time(int steps, int passes, bool exchanging) {
    const auto begin = std::chrono::steady_clock::now();
    for (int step = 0; step < steps; ++step) {
      if (exchanging) {
        expect(optimizer_->begin_step());
      }
      for (int pass = 0; pass < passes; ++pass) {
        cuda::scale(0.5F, load_, stream_.stream());
      }
      if (exchanging) {
        expect(optimizer_->step(gradient_));
      }
    }
    if (exchanging) {
      expect(optimizer_->drain());
    }
    stream_.wait();
    expect(stream_.status());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    return taken.count() / steps;
  }

 private:
  std::span<float> part(const Job& job, std::size_t number) const {
    return memory_.as<float>(number * job.elements * sizeof(float), job.elements);
  }

  cuda::Queue stream_;
  cuda::Memory memory_;
  std::span<float> x_;
  std::span<float> gradient_;
  std::span<float> load_;
  std::unique_ptr<Optimizer> optimizer_;
};

/// All nodes at once; the slowest one's time.
double time_all(std::vector<std::unique_ptr<Trainer>>& trainers, int steps, int passes,
                bool exchanging) {
  std::vector<double> seconds(trainers.size());
  std::vector<std::exception_ptr> faults(trainers.size());
  std::vector<std::thread> threads;
  for (std::size_t node = 0; node < trainers.size(); ++node) {
    threads.emplace_back([&, node] {
      try {
        seconds[node] = trainers[node]->time(steps, passes, exchanging);
      } catch (...) {
        faults[node] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const auto& fault : faults) {
    if (fault) {
      std::rethrow_exception(fault);
    }
  }
  return *std::ranges::max_element(seconds);
}

nlohmann::json measure(const Job& job) {
  const auto store = make_memory_store();
  std::vector<std::unique_ptr<Trainer>> trainers;
  trainers.reserve(kNodes);
  for (Rank rank = 0; rank < kNodes; ++rank) {
    trainers.push_back(std::make_unique<Trainer>(job, rank, store));
  }
  constexpr int kWarm = 5;
  constexpr double kTimes = 10;
  const double exchange = (time_all(trainers, kWarm, 0, true), time_all(trainers, kWarm, 0, true));
  const double pass = (time_all(trainers, 1, 100, false), time_all(trainers, 1, 100, false)) / 100;
  const int passes = std::max(1, static_cast<int>(kTimes * exchange / pass));
  std::vector<double> ratios;
  double compute = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    compute = time_all(trainers, job.steps, passes, false);
    ratios.push_back(time_all(trainers, job.steps, passes, true) / compute);
  }
  std::ranges::sort(ratios);
  return {{"device", cuda::device_name()},
          {"elements", job.elements},
          {"algorithm", job.algorithm},
          {"compressor", job.compressor},
          {"exchange_alone_s", exchange},
          {"compute_s", compute},
          {"step_over_compute", {{"median", ratios[2]}, {"least", ratios[0]}, {"most", ratios[4]}}},
          {"limit", 1.03}};
}

}  // namespace

int main(int argc, char** argv) {
  Job job;
  CLI::App app("A step of training on a GPU beside its computing alone, as JSON");
  app.add_option("elements", job.elements, "Length of the model")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("steps", job.steps, "That are timed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("algorithm", job.algorithm, "As `sotto train` has it")->capture_default_str();
  app.add_option("compressor", job.compressor, "The same")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    std::puts(measure(job).dump(2).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_step: %s\n", error.what());
    return 2;
  }
}

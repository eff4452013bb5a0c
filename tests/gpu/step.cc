// What a step of training costs on a GPU beside its computing: two nodes, threads of this process
// with a stream each on one device, that exchange over inproc while kernels of the caller's go on:
//   gpu_step ELEMENTS STEPS ALGORITHM COMPRESSOR JSON
// Shows the time of a step over that of computing alone.
//
// Computing is so many passes over a vector of the trainer's own that it takes about ten times as
// long as an exchange with nothing beside it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/cuda/accelerator.h>
#include <sotto/compress/registry.h>
#include <sotto/kernels/cuda/memory.h>
#include <sotto/kernels/cuda/ops.h>
#include <sotto/kernels/cuda/queue.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/step_rule.h>
#include <sotto/topology/registry.h>
#include <sotto/trainers/driver.h>

#include "../../comm/internal/backends.h"
#include "number.h"

namespace {

using namespace sotto;

constexpr int kNodes = 2;
constexpr double kLimit = 1.03;

struct Job {
  std::size_t elements = 0;
  int steps = 0;
  std::string algorithm;
  std::string compressor;
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
        gradient_(part(job, 1)),
        load_(part(job, 2)),
        accelerator_(cuda::make_accelerator(stream_.stream())) {
    for (const auto vector : {part(job, 0), gradient_, load_}) {
      cuda::fill(1e-3F, vector, stream_.stream());
    }
    algorithm_ = make_algorithm(job.algorithm, setup(job, rank));
    const Peers peers = algorithm_->peers();
    auto transport = internal::make_inproc_transport({.rank = rank,
                                                      .nodes = kNodes,
                                                      .to = peers.to,
                                                      .from = peers.from,
                                                      .max_frame_bytes = peers.max_frame_bytes,
                                                      .store = std::move(store)});
    expect(transport.status());
    transport_ = std::move(*transport);
    driver_.emplace(*algorithm_, *transport_,
                    DriverOptions{.rank = rank, .accelerator = accelerator_.get()});
  }

  /// Seconds a step of `passes` over the load, with an exchange where `exchanging`.
  double time(int steps, int passes, bool exchanging) {
    const auto begin = std::chrono::steady_clock::now();
    for (int step = 0; step < steps; ++step) {
      if (exchanging) {
        expect(driver_->begin_round());
      }
      for (int pass = 0; pass < passes; ++pass) {
        cuda::scale(0.5F, load_, stream_.stream());
      }
      if (exchanging) {
        expect(driver_->gradient_ready(gradient_));
      }
    }
    if (exchanging) {
      expect(driver_->drain());
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
  AlgorithmSetup setup(const Job& job, Rank rank) const {
    const AlgorithmInfo& info = algorithm_info(job.algorithm);
    AlgorithmSetup setup;
    setup.accelerator = accelerator_;
    setup.rank = rank;
    setup.nodes = kNodes;
    setup.parameters = part(job, 0);
    setup.layout = complete_layout({}, job.elements);
    setup.topology = make_topology("ring", kNodes);
    setup.step_rule = make_step_rule({.learning_rate = 0.01}, accelerator_->ops());
    setup.compressor = make_compressor(job.compressor, info.contract);
    setup.ops = &accelerator_->ops();
    return setup;
  }

  cuda::Queue stream_;
  cuda::Memory memory_;
  std::span<float> gradient_;
  std::span<float> load_;
  std::shared_ptr<Accelerator> accelerator_;
  std::unique_ptr<Algorithm> algorithm_;
  std::unique_ptr<Transport> transport_;
  std::optional<Driver> driver_;
};

/// Each in a thread of its own; throws what one of them has thrown.
template <typename Work>
void on_all_nodes(const Work& work) {
  std::array<std::exception_ptr, kNodes> faults;
  std::vector<std::thread> threads;
  for (std::size_t node = 0; node < faults.size(); ++node) {
    threads.emplace_back([&, node] {
      try {
        work(node);
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
}

using Trainers = std::array<std::unique_ptr<Trainer>, kNodes>;

/// The slowest node's time.
double time_all(Trainers& trainers, int steps, int passes, bool exchanging) {
  std::array<double, kNodes> seconds{};
  on_all_nodes(
      [&](std::size_t node) { seconds[node] = trainers[node]->time(steps, passes, exchanging); });
  return *std::ranges::max_element(seconds);
}

void measure(const Job& job, const std::string& path) {
  constexpr int kWarm = 5;
  constexpr double kTimes = 10;
  const auto store = make_memory_store();
  Trainers trainers;
  on_all_nodes([&](std::size_t node) {
    trainers[node] = std::make_unique<Trainer>(job, static_cast<Rank>(node), store);
  });
  const double exchange = (time_all(trainers, kWarm, 0, true), time_all(trainers, kWarm, 0, true));
  const double pass = (time_all(trainers, 1, 100, false), time_all(trainers, 1, 100, false)) / 100;
  const int passes = std::max(1, static_cast<int>(kTimes * exchange / pass));
  std::array<double, 5> ratios{};
  double compute = 0;
  for (double& ratio : ratios) {
    compute = time_all(trainers, job.steps, passes, false);
    ratio = time_all(trainers, job.steps, passes, true) / compute;
  }
  std::ranges::sort(ratios);
  fmt::print(
      "{}, {} {}, {} elements: a step takes {:.3f} × computing alone ({:.3f} to {:.3f}; at most {} "
      "is wanted)\n"
      "computing takes {:.3g} ms, an exchange with nothing beside it {:.3g} ms\n",
      cuda::device_name(), job.algorithm, job.compressor, job.elements, ratios[2], ratios.front(),
      ratios.back(), kLimit, 1e3 * compute, 1e3 * exchange);
  std::ofstream json(path);
  json << fmt::format(
      "{{\"device\": \"{}\", \"elements\": {}, \"algorithm\": \"{}\", \"compressor\": \"{}\",\n"
      "\"exchange_alone_s\": {:.6g}, \"compute_s\": {:.6g}, \"step_over_compute\": "
      "{{\"median\": {:.4f}, \"least\": {:.4f}, \"most\": {:.4f}}}, \"limit\": {}}}\n",
      cuda::device_name(), job.elements, job.algorithm, job.compressor, exchange, compute,
      ratios[2], ratios.front(), ratios.back(), kLimit);
  if (!json.flush()) {
    throw Error(fmt::format("{} cannot be written", path));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() != 5) {
    fmt::print(stderr, "usage: gpu_step ELEMENTS STEPS ALGORITHM COMPRESSOR JSON\n");
    return 2;
  }
  try {
    measure({.elements = number<std::size_t>(arguments[0]),
             .steps = number<int>(arguments[1]),
             .algorithm = arguments[2],
             .compressor = arguments[3]},
            arguments[4]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}

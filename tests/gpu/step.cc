// What a step of training costs on a GPU beside its computing: two nodes, threads of this process
// with a stream each on one device, that exchange over inproc while kernels of one of them go on:
//   gpu_step ELEMENTS ALGORITHM COMPRESSOR JSON
// Shows the time of a step of that node over that of its computing alone, and fails where it is
// too long at 2^26 elements.
//
// Computing is so many passes over a vector of the trainer's own that it takes about ten times as
// long as an exchange with nothing beside it. The other node has nothing to compute, or it would
// hide what the first one waits for; but the same device does its part of the exchange, so that the
// ratio is above that of nodes with a device each.
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
#include <sotto/base/philox.h>
#include <sotto/comm/stores.h>
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
constexpr std::size_t kLong = std::size_t{1} << 26U;

struct Job {
  std::size_t elements = 0;
  std::string algorithm;
  std::string compressor;
};

void expect(const Status& status) {
  if (!status.ok()) {
    throw Error(status.message());
  }
}

/// Writes normal values to the device, the same after each million: what is constant costs codecs
/// less.
void write_normal(double scale, std::uint64_t seed, std::span<float> to) {
  RandomStream normals({.seed = seed, .purpose = Purpose::measure});
  std::vector<float> values(std::min(to.size(), std::size_t{1} << 20U));
  for (float& value : values) {
    value = static_cast<float>(scale * normals.normal());
  }
  for (std::size_t first = 0; first < to.size(); first += values.size()) {
    const auto piece = to.subspan(first, std::min(values.size(), to.size() - first));
    cuda::copy_to_device(std::as_bytes(std::span(values).first(piece.size())),
                         std::as_writable_bytes(piece));
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
    write_normal(1, 0, part(job, 0));
    write_normal(0.1, static_cast<std::uint64_t>(rank) + 1, gradient_);
    cuda::fill(1, load_, stream_.stream());
    stream_.wait();  // the algorithm reads the model on a stream of its own
    expect(stream_.status());
    algorithm_ = make_algorithm(job.algorithm, setup(job, rank));
    const Peers peers = algorithm_->peers();
    auto transport = internal::make_inproc_transport({.rank = rank,
                                                      .nodes = kNodes,
                                                      .to = peers.to,
                                                      .from = peers.from,
                                                      .max_frame_bytes = peers.max_frame_bytes,
                                                      .frames_ahead = peers.frames_ahead(),
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
      } else {
        stream_.wait();
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

/// Seconds a step of the first node, which alone computes.
double time_step(Trainers& trainers, int steps, int passes) {
  std::array<double, kNodes> seconds{};
  on_all_nodes([&](std::size_t node) {
    seconds[node] = trainers[node]->time(steps, node == 0 ? passes : 0, true);
  });
  return seconds.front();
}

/// Whether a step is short enough.
bool measure(const Job& job, const std::string& path) {
  constexpr int kWarm = 5;
  constexpr double kTimes = 10;
  constexpr double kRunS = 2;
  const auto store = make_memory_store();
  Trainers trainers;
  on_all_nodes([&](std::size_t node) {
    trainers[node] = std::make_unique<Trainer>(job, static_cast<Rank>(node), store);
  });
  Trainer& first = *trainers.front();
  const double exchange = (time_step(trainers, kWarm, 0), time_step(trainers, kWarm, 0));
  const double pass = (first.time(1, 100, false), first.time(1, 100, false)) / 100;
  const int passes = std::max(1, static_cast<int>(kTimes * exchange / pass));
  const int steps = std::clamp(static_cast<int>(kRunS / (passes * pass)), 3, 50);
  std::array<double, 5> ratios{};
  std::array<double, 5> computing{};
  for (std::size_t repeat = 0; repeat < ratios.size(); ++repeat) {
    computing[repeat] = first.time(steps, passes, false);
    ratios[repeat] = time_step(trainers, steps, passes) / computing[repeat];
  }
  std::ranges::sort(ratios);
  std::ranges::sort(computing);
  const double compute = computing[2];
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
  const bool enough = job.elements != kLong || ratios[2] <= kLimit;
  if (!enough) {
    fmt::print("SHORT: a step takes {:.3f} × computing where {} are wanted\n", ratios[2], kLimit);
  }
  return enough;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() != 4) {
    fmt::print(stderr, "usage: gpu_step ELEMENTS ALGORITHM COMPRESSOR JSON\n");
    return 2;
  }
  try {
    const bool enough = measure({.elements = number<std::size_t>(arguments[0]),
                                 .algorithm = arguments[1],
                                 .compressor = arguments[2]},
                                arguments[3]);
    return enough ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_step: {}\n", error.what());
    return 1;
  }
}

// The program `sotto_peer`: one process of a job that steps again and again with sotto's optimizer,
// along a gradient that is there already, as the vectors of other peers are. Rank 0 prints "warm"
// when the measured rounds begin, and JSON at the end.
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/base/philox.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/store.h>
#include <sotto/trainers/optimizer.h>

#include "laps.h"
#include "place.h"

namespace {

using sotto::peers::Place;

/// Gradients of about this size move parameters that start from zero.
constexpr double kGradient = 1e-2;

struct Request {
  Place place;
  sotto::peers::LapRequest laps;
  sotto::OptimizerOptions optimizer;
  std::size_t elements = 1'000'000;
};

void add_options(CLI::App& program, Request& request) {
  add_place_options(program, request.place);
  add_lap_options(program, request.laps);
  program.add_option("--algorithm", request.optimizer.algorithm, "As of `sotto train`");
  program.add_option("--compressor", request.optimizer.compressor, "As of `sotto train`");
  program.add_option("--topology", request.optimizer.topology, "As of `sotto train`");
  program.add_option("--transport", request.optimizer.transport, "gloo or zmq");
  program.add_option("--seed", request.optimizer.seed, "Of gradients and noise");
  program.add_option("--elements", request.elements, "Length of the model");
}

void require(const sotto::Status& status) {
  if (!status.ok()) {
    throw std::runtime_error(status.message());
  }
}

/// Where all processes wait for each other, beside the network that is measured.
class Barrier {
 public:
  Barrier(const Place& place, sotto::Store& store) : place_(place), store_(store) {}

  void wait() {
    const auto key = [this](int rank) { return fmt::format("lap/{}/{}", waits_, rank); };
    const auto deadline = sotto::Deadline::after(
        std::chrono::milliseconds(static_cast<std::int64_t>(1000 * place_.timeout_s)));
    require(store_.set(key(place_.rank), {}));
    for (int rank = 0; rank < place_.size; ++rank) {
      require(store_.get(key(rank), deadline).status());
    }
    ++waits_;
  }

 private:
  const Place& place_;
  sotto::Store& store_;
  int waits_ = 0;
};

std::vector<float> gradient_of(const Request& request) {
  sotto::RandomStream normals({.seed = request.optimizer.seed,
                               .rank = request.place.rank,
                               .purpose = sotto::Purpose::generate});
  std::vector<float> gradient(request.elements);
  for (float& value : gradient) {
    value = static_cast<float>(kGradient * normals.normal());
  }
  return gradient;
}

std::uint64_t bytes_sent(const sotto::Optimizer& optimizer) {
  std::uint64_t bytes = 0;
  for (const auto& link : optimizer.traffic()) {
    bytes += link.bytes;
  }
  return bytes;
}

void race(Request& request) {
  const Place& place = request.place;
  auto& options = request.optimizer;
  options.nodes = place.size;
  options.rank = place.rank;
  options.store = sotto::make_file_store(place.store);
  options.bind = place.address;
  options.insecure = true;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * place.timeout_s));
  const auto gradient = gradient_of(request);
  std::vector<float> x(request.elements, 0.0F);
  sotto::Optimizer optimizer(options, x);
  require(optimizer.connect());
  Barrier barrier(place, optimizer.store());
  const auto laps = run_laps(request.laps, {.rank = place.rank,
                                            .round =
                                                [&] {
                                                  require(optimizer.begin_step());
                                                  require(optimizer.step(gradient));
                                                },
                                            .meet = [&] { barrier.wait(); },
                                            .end = [&] { require(optimizer.drain()); }});
  if (place.rank == 0) {
    const auto rounds = static_cast<double>(optimizer.round());
    print_laps(laps, static_cast<double>(bytes_sent(optimizer)) / rounds);
  }
  require(optimizer.finish());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("One process of a job that steps with sotto's optimizer", "sotto_peer");
  Request request;
  add_options(program, request);
  return sotto::peers::run_peer(program, argc, argv, [&] { race(request); });
}

// The program `sotto_peer`: one process of a job that steps again and again with sotto's optimizer,
// along a gradient that is there already, as the vectors of other peers are. Rank 0 prints "warm"
// when the measured rounds begin, and JSON at the end.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/base/bytes.h>
#include <sotto/base/philox.h>
#include <sotto/base/status.h>
#include <sotto/comm/stores.h>
#include <sotto/trainers/meetings/store_collectives.h>
#include <sotto/trainers/optimizer.h>

#include "place.h"
#include "round_times.h"

namespace {

using sotto::peers::Place;

/// Gradients of about this size move parameters that start from zero.
constexpr double kGradient = 1e-2;

struct Request {
  Place place;
  sotto::peers::RoundTimesRequest times;
  sotto::OptimizerOptions optimizer;
  std::size_t elements = 1'000'000;
};

void add_options(CLI::App& program, Request& request) {
  add_place_options(program, request.place);
  add_round_options(program, request.times);
  program.add_option("--algorithm", request.optimizer.algorithm, "As of `sotto train`");
  program.add_option("--compressor", request.optimizer.compressor, "As of `sotto train`");
  program.add_option("--topology", request.optimizer.topology, "As of `sotto train`");
  program.add_option("--delayed-gradient", request.optimizer.delayed_gradient,
                     "As of `sotto train`");
  program.add_option("--transport", request.optimizer.transport, "gloo or zmq");
  program.add_option("--seed", request.optimizer.seed, "Of gradients and noise");
  program.add_option("--elements", request.elements, "Length of the model");
}

void require(const sotto::Status& status) {
  if (!status.ok()) {
    throw std::runtime_error(status.message());
  }
}

template <typename T>
T expect(sotto::Result<T> result) {
  require(result.status());
  return std::move(*result);
}

/// Where the processes, all of one machine, agree beside the network that is measured.
class Referee {
 public:
  Referee(sotto::Store& store, const Place& place, std::chrono::milliseconds timeout)
      : collectives_(store, place.rank, place.size, timeout) {}

  /// Returns on all processes at the same time, when all are there: a store is looked at from time
  /// to time, which is longer than a round may be.
  void start_together() {
    constexpr std::chrono::milliseconds kAhead{100};
    const std::string name = fmt::format("lap-{}", starts_++);
    require(collectives_.barrier(name));
    const auto start = bytes_of((Clock::now() + kAhead).time_since_epoch().count());
    const auto agreed = expect(collectives_.broadcast("start-" + name, start));
    std::this_thread::sleep_until(
        Clock::time_point(Clock::duration(sotto::ByteReader(agreed).read<Clock::duration::rep>())));
  }
  /// The largest of all processes' seconds, on rank 0.
  double slowest(double seconds) {
    for (const auto& one : expect(collectives_.gather("seconds", bytes_of(seconds)))) {
      seconds = std::max(seconds, sotto::ByteReader(one).read<double>());
    }
    return seconds;
  }

 private:
  using Clock = std::chrono::steady_clock;

  template <typename T>
  static std::vector<std::byte> bytes_of(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    return {bytes.begin(), bytes.end()};
  }

  sotto::StoreCollectives collectives_;
  int starts_ = 0;
};

/// What does not step may not win.
void check_model(std::span<const float> x) {
  const bool finite = std::ranges::all_of(x, [](float value) { return std::isfinite(value); });
  if (!finite || std::ranges::all_of(x, [](float value) { return value == 0; })) {
    throw std::runtime_error(finite ? "the model has not moved" : "the model is not finite");
  }
}

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
  const sotto::NodeStanding standing = optimizer.standing();
  for (const auto& link : standing.traffic) {
    bytes += link.bytes;
  }
  return bytes;
}

void measure(Request& request) {
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
  Referee referee(optimizer.store(), place, options.timeout);
  const auto step = [&] {
    require(optimizer.begin_step());
    require(optimizer.step(gradient));
  };
  const auto times = time_rounds(
      request.times, {.rank = place.rank,
                      .round = step,
                      .meet = [&] { referee.start_together(); },
                      .slowest = [&](double seconds) { return referee.slowest(seconds); },
                      .end = [&] { require(optimizer.drain()); }});
  check_model(optimizer.parameters());
  if (place.rank == 0) {
    const auto rounds = static_cast<double>(optimizer.round());
    print_round_times(times, static_cast<double>(bytes_sent(optimizer)) / rounds);
  }
  require(optimizer.finish());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("One process of a job that steps with sotto's optimizer", "sotto_peer");
  Request request;
  add_options(program, request);
  return sotto::peers::run_peer(program, argc, argv, [&] { measure(request); });
}

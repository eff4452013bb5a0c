// What a round costs where nodes come and go, beside a round of a fixed number of them: the same
// algorithm, whole gradients or models, over ZeroMQ on loopback, in turns.
//   build/bench/elastic_rounds [--dimension 1000000] [--nodes 2] [--rounds 40] [--repeats 7]
// Nodes are threads of this process, and compute nothing. A time is the median of a run's rounds,
// of the slowest node; a ratio is that of two runs one after the other. The processor's time is
// that of all threads of all nodes, a round: other programs on the machine change it little.
// Channels of nodes that come and go are always encrypted; so are the fixed nodes beside them, and
// once more in plain text with --plain. --mbit R has the kernel send no faster than R Mbit/s on
// each connection and each way (SO_MAX_PACING_RATE), from the end of the first round on: a link of
// that rate, without its delay. With --gradient-time, `--only parts` compares gradients that are
// given whole, after that time, with those that are given in eight parts on the way, from the last
// parameters to the first, as a backward pass has them.
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/comm/stores.h>
#include <sotto/comm/trust/allow_list.h>
#include <sotto/sites/elastic/elastic_optimizer.h>
#include <sotto/sites/process/site_of_options.h>
#include <sotto/sites/process/site_optimizer.h>
#include <sotto/trainers/optimizer.h>

#include "bench/support/command_line.h"
#include "bench/support/loopback.h"
#include "bench/support/quantile.h"
#include "bench/support/statistics.h"

namespace sotto::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Request {
  std::size_t dimension = 1'000'000;
  int nodes = 2;
  int rounds = 40;
  int repeats = 7;
  bool plain = false;      ///< beside fixed nodes in plain text, too
  std::string only;        ///< the pairing that is measured; empty: all
  double mbit = 0;         ///< rate of each connection in Mbit/s; 0: as fast as the host is
  double gradient_ms = 0;  ///< time of a gradient, for parts
};

/// What a round costs.
struct Cost {
  double ms = 0;
  double processor_ms = 0;  ///< of all nodes together
};

constexpr int kWarmUp = 5;  // rounds
constexpr float kRate = 0.01F;

void require(const Status& status) {
  if (!status.ok()) {
    throw std::runtime_error(status.message());
  }
}

/// Milliseconds that all threads of this process have computed.
double processor_ms() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

/// Has the kernel pace what this process sends on each connection over TCP that is open.
void pace_connections(double mbit) {
  const auto rate = static_cast<std::uint64_t>(mbit * 1e6 / 8);
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(file.path().filename());
    int type = 0;
    socklen_t length = sizeof type;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM) {
      (void)::setsockopt(descriptor, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
    }
  }
}

/// Times `step`, which makes a round, and takes the median.
Cost cost_of(const Request& request, const std::function<Status()>& step) {
  std::vector<double> times;
  double before = 0;
  for (int round = 0; round < kWarmUp + request.rounds; ++round) {
    if (round == kWarmUp) {
      before = processor_ms();
    }
    const auto begin = Clock::now();
    require(step());
    if (round == 0 && request.mbit > 0) {
      pace_connections(request.mbit);
    }
    if (round >= kWarmUp) {
      times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
  }
  return {.ms = median(times), .processor_ms = (processor_ms() - before) / request.rounds};
}

/// Runs `node` for each number in a thread of its own; the most that a round cost.
Cost slowest(const Request& request, const std::function<Cost(int node)>& node) {
  std::vector<std::future<Cost>> nodes;
  for (int k = 0; k < request.nodes; ++k) {
    nodes.push_back(std::async(std::launch::async, node, k));
  }
  Cost most;
  for (auto& one : nodes) {
    const Cost cost = one.get();
    most = {.ms = std::max(most.ms, cost.ms),
            .processor_ms = std::max(most.processor_ms, cost.processor_ms)};
  }
  return most;
}

/// Nodes of a fixed number, `algorithm` on the complete graph.
Cost fixed_round(const Request& request, const std::string& algorithm, bool encrypted) {
  std::vector<KeyPair> keys;
  std::vector<TrustedPeer> peers;
  for (Rank rank = 0; rank < request.nodes; ++rank) {
    keys.push_back(make_key_pair());
    TrustedPeer peer;
    peer.rank = rank;
    peer.name = fmt::format("n{}", rank);
    peer.key = keys.back().public_key;
    peers.push_back(std::move(peer));
  }
  const auto list = std::make_shared<AllowList>(std::move(peers));
  const auto store = make_memory_store();
  return slowest(request, [&](int rank) {
    OptimizerOptions options;
    options.algorithm = algorithm;
    options.compressor = "none";
    options.topology = "complete";
    options.step_rule.learning_rate = kRate;
    options.transport = "zmq";
    options.nodes = request.nodes;
    options.rank = rank;
    options.store = store;
    if (encrypted) {
      options.security = Security{.own = keys[static_cast<std::size_t>(rank)], .peers = list};
    }
    std::vector<float> x(request.dimension);
    const std::vector<float> gradient(request.dimension, 1);
    Optimizer optimizer(options, x);
    const Cost cost = cost_of(request, [&] { return optimizer.step(gradient); });
    require(optimizer.finish());
    return cost;
  });
}

RosterOptions roster_of(const Request& request, const std::string& seed) {
  const auto nodes = static_cast<std::size_t>(request.nodes);
  return {.least = nodes, .most = nodes, .seeds = {seed}};
}

std::string new_seed() { return fmt::format("127.0.0.1:{}", hold_port().second); }

/// A step by a gradient that is there after its time, and given in so many equal parts.
Result<ElasticStep> step_in_parts(const Request& request, ElasticOptimizer& optimizer,
                                  std::span<const float> gradient, std::size_t parts) {
  const auto begin = Clock::now();
  std::size_t rest = gradient.size();
  for (std::size_t k = 1; k <= parts; ++k) {
    const auto part = static_cast<double>(k) / static_cast<double>(parts);
    std::this_thread::sleep_until(
        begin + std::chrono::duration<double, std::milli>(request.gradient_ms * part));
    const std::size_t first = gradient.size() * (parts - k) / parts;
    if (parts > 1) {
      require(optimizer.gradient_part(first, gradient.subspan(first, rest - first)));
    }
    rest = first;
  }
  return parts > 1 ? optimizer.step_by_parts() : optimizer.step(gradient);
}

/// Nodes of one model that come and go.
Cost epoch_round(const Request& request, std::size_t parts = 1) {
  const std::string seed = new_seed();
  return slowest(request, [&](int node) {
    ElasticOptions options;
    options.name = fmt::format("n{}", node);
    options.listen = node == 0 ? seed : "127.0.0.1:0";
    options.roster = roster_of(request, seed);
    options.step_rule.learning_rate = kRate;
    options.rounds = static_cast<Round>(kWarmUp + request.rounds);
    std::vector<float> x(request.dimension);
    const std::vector<float> gradient(request.dimension, 1);
    ElasticOptimizer optimizer(options, x);
    require(optimizer.connect());
    const Cost cost = cost_of(
        request, [&] { return step_in_parts(request, optimizer, gradient, parts).status(); });
    require(optimizer.finish());
    return cost;
  });
}

/// Nodes with a model each that come and go.
Cost site_round(const Request& request, const std::string& algorithm) {
  const std::string seed = new_seed();
  return slowest(request, [&](int node) {
    SiteOptions options = options_by_roster(roster_of(request, seed), fmt::format("n{}", node));
    options.listen = node == 0 ? seed : "127.0.0.1:0";
    options.compressor = "none";
    options.exchange =
        algorithm == "pushsum" ? sites::MixingKind::push_sum : sites::MixingKind::gossip;
    options.step_rule.learning_rate = kRate;
    options.rounds = static_cast<Round>(kWarmUp + request.rounds);
    std::vector<float> x(request.dimension);
    const std::vector<float> gradient(request.dimension, 1);
    SiteOptimizer optimizer(options, "", x);
    require(optimizer.connect());
    const Cost cost = cost_of(request, [&] { return optimizer.step(gradient).status(); });
    require(optimizer.finish());
    return cost;
  });
}

/// Measures both sides in turns, and says how they compare.
void compare(const Request& request, const std::string& what, const std::function<Cost()>& fixed,
             const std::function<Cost()>& elastic) {
  std::vector<double> before;
  std::vector<double> after;
  std::vector<double> ratios;
  std::vector<double> busy_before;
  std::vector<double> busy_after;
  std::vector<double> busy_ratios;
  for (int repeat = 0; repeat < request.repeats; ++repeat) {
    const Cost first = fixed();
    const Cost second = elastic();
    before.push_back(first.ms);
    after.push_back(second.ms);
    ratios.push_back(second.ms / first.ms);
    busy_before.push_back(first.processor_ms);
    busy_after.push_back(second.processor_ms);
    busy_ratios.push_back(second.processor_ms / first.processor_ms);
  }
  const MedianSpread ratio = spread_of(ratios);
  const MedianSpread busy = spread_of(busy_ratios);
  fmt::print(
      "{:<30} {:>7.2f} ms {:>7.2f} ms {:>6.2f} ({:.2f} to {:.2f}) {:>7.2f} ms {:>7.2f} ms "
      "{:>6.2f} ({:.2f} to {:.2f})\n",
      what, median(before), median(after), ratio.median, ratio.low, ratio.high, median(busy_before),
      median(busy_after), busy.median, busy.low, busy.high);
  std::fflush(stdout);
}

void measure_parts(const Request& request) {
  constexpr std::size_t kParts = 8;
  fmt::print(
      "{} nodes on loopback{}, {} parameters, a gradient of {} ms: a round with it whole, in "
      "{} parts, and their ratio; then the processor's time a round\n",
      request.nodes, request.mbit > 0 ? fmt::format(" at {} Mbit/s", request.mbit) : "",
      request.dimension, request.gradient_ms, kParts);
  compare(
      request, "epochs, allreduce", [&] { return epoch_round(request); },
      [&] { return epoch_round(request, kParts); });
}

void measure(const Request& request) {
  fmt::print(
      "{} nodes on loopback{}, {} parameters: a round of fixed nodes, of nodes that come and go, "
      "and "
      "their ratio; then the processor's time a round\n",
      request.nodes, request.mbit > 0 ? fmt::format(" at {} Mbit/s", request.mbit) : "",
      request.dimension);
  for (const bool encrypted : {true, false}) {
    if (!encrypted && !request.plain) {
      break;
    }
    for (const std::string algorithm : {"allreduce", "pushsum", "dpsgd"}) {
      if (!request.only.empty() && request.only != algorithm) {
        continue;
      }
      const bool epochs = algorithm == "allreduce";
      compare(
          request,
          fmt::format("{}, {}{}", epochs ? "epochs" : "sites", algorithm,
                      encrypted ? "" : ", fixed plain"),
          [&] { return fixed_round(request, algorithm, encrypted); },
          [&] { return epochs ? epoch_round(request) : site_round(request, algorithm); });
    }
  }
}

}  // namespace
}  // namespace sotto::bench

int main(int argc, char** argv) {
  sotto::bench::Request request;
  CLI::App app{"A round where nodes come and go, beside one of a fixed number of nodes"};
  app.add_option("--dimension", request.dimension, "Parameters")->capture_default_str();
  app.add_option("--nodes", request.nodes, "Nodes")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  app.add_option("--rounds", request.rounds, "Rounds of a run")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--repeats", request.repeats, "Runs of each")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  app.add_option("--only", request.only,
                 "The algorithm that is measured, all if none is named; or gradients in parts")
      ->check(CLI::IsMember({"allreduce", "pushsum", "dpsgd", "parts"}));
  app.add_option("--gradient-time", request.gradient_ms, "Milliseconds of a gradient, for parts")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--mbit", request.mbit, "Mbit/s of each connection; 0: as fast as the host is")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_flag("--plain", request.plain, "Also beside fixed nodes in plain text");
  return sotto::bench::run_main(app, argc, argv, [&] {
    if (request.only == "parts") {
      sotto::bench::measure_parts(request);
    } else {
      sotto::bench::measure(request);
    }
    return 0;
  });
}

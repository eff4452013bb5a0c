// What a round costs where nodes come and go, beside a round of a fixed number of them: the same
// algorithm, whole gradients or models, over ZeroMQ on loopback, in turns.
//   build/bench/elastic_rounds [--dimension 1000000] [--nodes 2] [--rounds 40] [--repeats 7]
// Nodes are threads of this process, and compute nothing. A time is the median of a run's rounds,
// of the slowest node; a ratio is that of two runs one after the other. Both sides are measured in
// plain text and encrypted, as channels of nodes that come and go always are.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/comm/stores.h>
#include <sotto/comm/trust/allow_list.h>
#include <sotto/sites/live/epoch_optimizer.h>
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
};

constexpr int kWarmUp = 5;  // rounds
constexpr float kRate = 0.01F;

void require(const Status& status) {
  if (!status.ok()) {
    throw std::runtime_error(status.message());
  }
}

/// Times `step`, which makes a round. The median in milliseconds.
double median_of(const Request& request, const std::function<Status()>& step) {
  std::vector<double> times;
  for (int round = 0; round < kWarmUp + request.rounds; ++round) {
    const auto begin = Clock::now();
    require(step());
    if (round >= kWarmUp) {
      times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
  }
  return median(times);
}

/// Runs `node` for each number in a thread of its own; the longest of their times.
double slowest(const Request& request, const std::function<double(int node)>& node) {
  std::vector<std::future<double>> nodes;
  for (int k = 0; k < request.nodes; ++k) {
    nodes.push_back(std::async(std::launch::async, node, k));
  }
  double longest = 0;
  for (auto& one : nodes) {
    longest = std::max(longest, one.get());
  }
  return longest;
}

/// Nodes of a fixed number, `algorithm` on the complete graph.
double fixed_round(const Request& request, const std::string& algorithm, bool encrypted) {
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
    const double time = median_of(request, [&] { return optimizer.step(gradient); });
    require(optimizer.finish());
    return time;
  });
}

RosterOptions roster_of(const Request& request, const std::string& seed) {
  const auto nodes = static_cast<std::size_t>(request.nodes);
  return {.least = nodes, .most = nodes, .seeds = {seed}};
}

std::string new_seed() { return fmt::format("127.0.0.1:{}", hold_port().second); }

/// Nodes of one model that come and go.
double epoch_round(const Request& request) {
  const std::string seed = new_seed();
  return slowest(request, [&](int node) {
    EpochOptions options;
    options.name = fmt::format("n{}", node);
    options.listen = node == 0 ? seed : "127.0.0.1:0";
    options.roster = roster_of(request, seed);
    options.step_rule.learning_rate = kRate;
    options.rounds = static_cast<Round>(kWarmUp + request.rounds);
    std::vector<float> x(request.dimension);
    const std::vector<float> gradient(request.dimension, 1);
    EpochOptimizer optimizer(options, x);
    require(optimizer.connect());
    const double time = median_of(request, [&] { return optimizer.step(gradient).status(); });
    require(optimizer.finish());
    return time;
  });
}

/// Nodes with a model each that come and go.
double site_round(const Request& request) {
  const std::string seed = new_seed();
  return slowest(request, [&](int node) {
    SiteOptions options = options_by_roster(roster_of(request, seed), fmt::format("n{}", node));
    options.listen = node == 0 ? seed : "127.0.0.1:0";
    options.compressor = "none";
    options.step_rule.learning_rate = kRate;
    options.rounds = static_cast<Round>(kWarmUp + request.rounds);
    std::vector<float> x(request.dimension);
    const std::vector<float> gradient(request.dimension, 1);
    SiteOptimizer optimizer(options, "", x);
    require(optimizer.connect());
    const double time = median_of(request, [&] { return optimizer.step(gradient).status(); });
    require(optimizer.finish());
    return time;
  });
}

/// Measures both sides in turns, and says how they compare.
void compare(const Request& request, const std::string& what, const std::function<double()>& fixed,
             const std::function<double()>& elastic) {
  std::vector<double> before;
  std::vector<double> after;
  std::vector<double> ratios;
  for (int repeat = 0; repeat < request.repeats; ++repeat) {
    before.push_back(fixed());
    after.push_back(elastic());
    ratios.push_back(after.back() / before.back());
  }
  const MedianSpread ratio = spread_of(ratios);
  fmt::print("{:<44} {:>8.2f} ms {:>8.2f} ms   {:.2f} ({:.2f} to {:.2f})\n", what, median(before),
             median(after), ratio.median, ratio.low, ratio.high);
  std::fflush(stdout);
}

void measure(const Request& request) {
  fmt::print(
      "{} nodes on loopback, {} parameters: a round of fixed nodes, of nodes that come and "
      "go, and their ratio\n",
      request.nodes, request.dimension);
  for (const bool encrypted : {true, false}) {
    const char* const how = encrypted ? "both encrypted" : "fixed nodes in plain text";
    compare(
        request, fmt::format("EpochOptimizer, allreduce, {}", how),
        [&] { return fixed_round(request, "allreduce", encrypted); },
        [&] { return epoch_round(request); });
    compare(
        request, fmt::format("SiteOptimizer, pushsum, {}", how),
        [&] { return fixed_round(request, "pushsum", encrypted); },
        [&] { return site_round(request); });
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
  return sotto::bench::run_main(app, argc, argv, [&] {
    sotto::bench::measure(request);
    return 0;
  });
}

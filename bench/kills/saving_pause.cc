// Whether training stands still while a site's state is written beside it, and what a site holds.
//   build/bench/saving_pause [--dimension 100000000] [--algorithm pushsum] [--save-every 4]
// Two sites on loopback, threads of this process, first without a state and then with one, which is
// written every so many rounds. A step is a gradient, which takes --gradient-time at least, and
// SiteOptimizer::step(). The pause is the slowest step over the median one; what of it is not the
// state's shows in the run without one.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <sotto/comm/trust/allow_list.h>
#include <sotto/sites/process/site_optimizer.h>
#include <sotto/sites/process/site_training.h>

#include "bench/support/command_line.h"
#include "bench/support/loopback.h"
#include "bench/support/quantile.h"

namespace sotto::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Request {
  std::size_t dimension = 100'000'000;
  OptimizerSettings exchange = [] {
    OptimizerSettings settings;
    settings.algorithm = "pushsum";
    settings.compressor = "sign";
    return settings;
  }();
  std::uint64_t rounds = 24;
  std::uint64_t save_every = 4;
  double gradient_s = 1;
  std::string folder = "saving-pause";
};

constexpr int kSites = 2;
constexpr std::size_t kWarmUp = 3;  // steps, in which sites meet and memory grows

/// Sites of one run.
struct Run {
  std::vector<double> steps;  ///< seconds of a step, of all sites
  double floats = 0;          ///< resident memory of a site, in floats a parameter
};

void require(const Status& status) {
  if (!status.ok()) {
    throw std::runtime_error(status.message());
  }
}

/// The process's resident memory in bytes.
double resident() {
  std::ifstream pages("/proc/self/statm");
  double all = 0;
  double here = 0;
  pages >> all >> here;
  return here * 4096;
}

/// Sites that trust each other: their keys, and the list.
struct Federation {
  std::vector<KeyPair> keys;
  std::shared_ptr<AllowList> list;
};

Federation make_federation() {
  Federation made;
  std::vector<TrustedPeer> lines;
  lines.reserve(kSites);
  made.keys.reserve(kSites);
  for (Rank site = 0; site < kSites; ++site) {
    made.keys.push_back(make_key_pair());
    TrustedPeer& line = lines.emplace_back();
    line.rank = site;
    line.name = fmt::format("n{}", site);
    line.key = made.keys.back().public_key;
    line.address = fmt::format("127.0.0.1:{}", hold_port().second);
  }
  made.list = std::make_shared<AllowList>(std::move(lines));
  return made;
}

std::vector<double> steps_of(const Request& request, const Federation& federation, int site,
                             bool keeps, double& most) {
  SiteOptions options{.security = {.own = federation.keys[static_cast<std::size_t>(site)],
                                   .peers = federation.list}};
  options.rank = site;
  options.name = fmt::format("n{}", site);
  take_exchange(request.exchange, false, options);
  options.step_rule.learning_rate = 0.01;
  options.rounds = request.rounds + kWarmUp;
  options.save_every = request.save_every;
  std::vector<float> parameters(request.dimension);
  std::vector<float> gradient(request.dimension, 1);
  const std::string state = keeps ? fmt::format("{}/n{}", request.folder, site) : "";
  SiteOptimizer optimizer(options, state, parameters);
  require(optimizer.connect());
  std::vector<double> steps;
  while (!optimizer.over()) {
    const auto begin = Clock::now();
    gradient[steps.size()] = -1;
    std::this_thread::sleep_until(begin + std::chrono::duration<double>(request.gradient_s));
    require(optimizer.step(gradient).status());
    steps.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    most = std::max(most, resident());
  }
  require(optimizer.finish());
  steps.erase(steps.begin(), steps.begin() + kWarmUp);
  return steps;
}

Run run(const Request& request, bool keeps) {
  const Federation federation = make_federation();
  std::vector<std::future<std::vector<double>>> sites;
  std::vector<double> most(kSites);
  for (int site = 0; site < kSites; ++site) {
    double& own = most[static_cast<std::size_t>(site)];
    sites.push_back(std::async(std::launch::async, [&request, &federation, &own, site, keeps] {
      return steps_of(request, federation, site, keeps, own);
    }));
  }
  Run run;
  for (auto& site : sites) {
    const std::vector<double> steps = site.get();
    run.steps.insert(run.steps.end(), steps.begin(), steps.end());
  }
  run.floats =
      std::ranges::max(most) / kSites / sizeof(float) / static_cast<double>(request.dimension);
  return run;
}

void measure(const Request& request) {
  fmt::print("{} sites on loopback, {} parameters, {}, {}, a state every {} rounds\n", kSites,
             request.dimension, request.exchange.algorithm, request.exchange.compressor,
             request.save_every);
  for (const bool keeps : {false, true}) {
    const Run one = run(request, keeps);
    const double middle = median(one.steps);
    const double slowest = std::ranges::max(one.steps);
    fmt::print(
        "{:<16} a step {:.2f} s, the slowest {:.2f} s, {:.2f} of it; {:.1f} floats a parameter\n",
        keeps ? "with a state" : "without a state", middle, slowest, slowest / middle, one.floats);
    fmt::print("{:<16} steps of one site, then of the other: {:.2f}\n", "",
               fmt::join(one.steps, " "));
    std::fflush(stdout);
  }
  std::filesystem::remove_all(request.folder);
}

}  // namespace
}  // namespace sotto::bench

int main(int argc, char** argv) {
  sotto::bench::Request request;
  CLI::App app{"Whether training stands still while a site's state is written beside it"};
  app.add_option("--dimension", request.dimension, "Parameters")->capture_default_str();
  app.add_option("--algorithm", request.exchange.algorithm, "Exchange of the sites")
      ->capture_default_str();
  app.add_option("--compressor", request.exchange.compressor, "Of what is sent")
      ->capture_default_str();
  app.add_option("--rounds", request.rounds, "Rounds that are timed")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--save-every", request.save_every, "Rounds from one state to the next")
      ->check(CLI::Range(2, 100'000))
      ->capture_default_str();
  app.add_option("--gradient-time", request.gradient_s, "Seconds of a gradient")
      ->check(CLI::Range(0.0, 1'000.0))
      ->capture_default_str();
  app.add_option("--folder", request.folder, "Where states are kept, and removed in the end")
      ->capture_default_str();
  return sotto::bench::run_main(app, argc, argv, [&] {
    sotto::bench::measure(request);
    return 0;
  });
}

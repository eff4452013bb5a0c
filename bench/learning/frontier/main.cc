// What training over slow networks has learnt, on the same work: all-reduce with AdamW beside
// algorithms that send less, or more rarely.
//   SOTTO_DATA=DIR build/bench/frontier --out FOLDER [--work text,text-blocks,…] [--json FILE]
// DIR has shakespeare/ and mnist/. Each entrant's learning rate is the best of three with the first
// seed, or of more where it would lie at an end of them. Models are trained in the simulator, and
// timed on three networks: the results of these algorithms do not depend on the network. FOLDER
// keeps the runs that are done, from which an interrupted study goes on, and gets a plot for each
// kind of work.
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/console/signals.h>

#include "bench/support/command_line.h"
#include "bench/support/json_file.h"

#include "entrant.h"
#include "table.h"
#include "trial.h"

namespace {

using namespace sotto;
using namespace sotto::bench;

const std::vector<Network> kNetworks = {
    {.name = "1 Gbit/s, 1 ms", .bandwidth = "1 Gbit/s", .latency = "1 ms"},
    {.name = "100 Mbit/s, 25 ms", .bandwidth = "100 Mbit/s", .latency = "25 ms"},
    {.name = "10 Mbit/s, 100 ms", .bandwidth = "10 Mbit/s", .latency = "100 ms"}};

struct FrontierSettings {
  std::filesystem::path data;
  std::filesystem::path out = "frontier.out";
  std::vector<std::string> works = {"text", "text-blocks", "mlp", "mlp-dirichlet"};
  std::vector<std::string> only;
  Conditions conditions;
  std::uint64_t seeds = 3;
  std::optional<double> target;
  std::string json;
};

std::vector<Work> all_works(const std::filesystem::path& data) {
  const std::string text =
      fmt::format("text:{},context=32", (data / "shakespeare" / "input.txt").string());
  const std::string mnist = fmt::format("mnist:{}", (data / "mnist").string());
  return {
      {"text", text, "transformer", "iid"}, {"text-blocks", text, "transformer", "blocks"},
      {"mlp", mnist, "mlp:64", "iid", 32},  {"mlp-dirichlet", mnist, "mlp:64", "dirichlet:0.1", 32},
      {"cnn", mnist, "cnn", "iid", 32},     {"cnn-dirichlet", mnist, "cnn", "dirichlet:0.1", 32}};
}

/// The elements of `all` with these names, in the order of the names. Throws Error for a name that
/// none has.
template <typename Named>
std::vector<Named> chosen(const std::string& option, const std::vector<Named>& all,
                          const std::vector<std::string>& names) {
  std::vector<Named> found;
  for (const std::string& name : names) {
    const auto one = std::ranges::find(all, name, &Named::name);
    if (one == all.end()) {
      std::string known;
      for (const Named& each : all) {
        known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", each.name);
      }
      refuse(option, name, fmt::format("there are {}", known));
    }
    found.push_back(*one);
  }
  return found;
}

class Study {
 public:
  explicit Study(const FrontierSettings& settings)
      : settings_(settings),
        entrants_(settings.only.empty()
                      ? entrants(settings.conditions.rounds)
                      : chosen("only", entrants(settings.conditions.rounds), settings.only)),
        trials_(settings.out / "trials.json", console::stop_request()) {}

  /// Runs what is to be run of one kind of work, prints its table and gives its figures.
  Json work(const Work& work) {
    fmt::print("\n{}: `{}`, `{}`, `{}`\n\n", work.name, work.task, work.model, work.partition);
    std::vector<EntrantRuns> runs;
    for (const Entrant& entrant : entrants_) {
      fmt::print(stderr, "{}: {}\n", work.name, entrant.name);
      runs.push_back(run(work, entrant));
    }
    const Table table = tabulate(runs, settings_.conditions, settings_.target);
    fmt::print("{}", markdown(table, kNetworks));
    (void)std::fflush(stdout);
    write_result_file("--out", (settings_.out / (work.name + ".svg")).string(),
                      plots(runs, table, kNetworks));
    Json figures = json_of(table, runs, kNetworks);
    figures["work"] = work.name;
    return figures;
  }

 private:
  EntrantRuns run(const Work& work, const Entrant& entrant) {
    EntrantRuns runs{.entrant = entrant};
    std::vector<double>& rates = runs.entrant.rates;
    const auto first_seed = [&](double rate) {
      return trials_.history(work, settings_.conditions, entrant.at(rate), 0);
    };
    for (const double rate : rates) {
      runs.searched.push_back(first_seed(rate));
    }
    std::size_t best = best_of(runs.searched);
    while (const auto further = further_rate(rates, best)) {
      const bool below = *further < rates.front();
      rates.insert(below ? rates.begin() : rates.end(), *further);
      runs.searched.insert(below ? runs.searched.begin() : runs.searched.end(),
                           first_seed(*further));
      best = best_of(runs.searched);
    }
    runs.rate = rates[best];
    runs.histories.push_back(runs.searched[best]);
    for (std::uint64_t seed = 1; seed < settings_.seeds; ++seed) {
      runs.histories.push_back(
          trials_.history(work, settings_.conditions, entrant.at(runs.rate), seed));
    }
    for (const Network& network : kNetworks) {
      runs.round_times.push_back(
          round_times(work, settings_.conditions, network, entrant.at(runs.rate)));
    }
    return runs;
  }

  const FrontierSettings& settings_;
  std::vector<Entrant> entrants_;
  Trials trials_;
};

void run(const FrontierSettings& settings) {
  const JsonFile file(settings.json);
  const auto works = chosen("work", all_works(settings.data), settings.works);
  std::filesystem::create_directories(settings.out);
  console::catch_stop_signals();
  Study study(settings);
  Json all = Json::array();
  for (const Work& work : works) {
    all.push_back(study.work(work));
  }
  file.write({{"nodes", settings.conditions.nodes},
              {"rounds", settings.conditions.rounds},
              {"gradient", settings.conditions.gradient},
              {"seeds", settings.seeds},
              {"works", std::move(all)}});
}

void add_options(CLI::App& app, FrontierSettings& settings) {
  app.add_option("--data", settings.data, "The folder of the data")
      ->envname("SOTTO_DATA")
      ->required();
  app.add_option("--out", settings.out, "Folder for runs that are done, and plots")
      ->capture_default_str();
  app.add_option("--work", settings.works,
                 "text, text-blocks, mlp, mlp-dirichlet, cnn, cnn-dirichlet")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--only", settings.only, "Entrants by name; the first is what others are beside");
  app.add_option("--nodes", settings.conditions.nodes, "Nodes")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  constexpr Round kFewestRounds = 20;
  constexpr Round kMostRounds = 100'000;
  app.add_option("--rounds", settings.conditions.rounds, "Gradients of each node")
      ->check(CLI::Range(kFewestRounds, kMostRounds))
      ->capture_default_str();
  app.add_option("--gradient", settings.conditions.gradient, "Virtual time of a gradient")
      ->capture_default_str();
  app.add_option("--seeds", settings.seeds, "Repetitions at the best rate")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--target", settings.target,
                 "Loss to be reached; by default the first entrant's last, and 0.05");
  app.add_option("--json", settings.json, "Write all figures to this file");
}

}  // namespace

int main(int argc, char** argv) {
  FrontierSettings settings;
  CLI::App app("What sends least, and learns soonest, on slow networks", "frontier");
  add_options(app, settings);
  return run_main(app, argc, argv, [&] {
    run(settings);
    return console::kDone;
  });
}

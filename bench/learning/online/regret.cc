// Online learning over one-sided trust: the regret of nodes that learn alone, with those who trust
// them back, by push-sum along all trust, and as one.
//   SOTTO_DATA=DIR build/bench/online_regret [--quick] [--json FILE]
// DIR has occupancy/, adult/a9a.t and trust/soc-sign-bitcoinalpha.csv (docs/measured.md says
// where they are from).
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/base/error.h>
#include <sotto/trainers/data/loaders.h>

#include "bench/support/command_line.h"
#include "bench/support/json_file.h"
#include "report.h"
#include "study.h"

namespace {

using namespace sotto;
using namespace sotto::bench;

constexpr std::size_t kAdultFeatures = 123;

struct RegretSettings {
  std::filesystem::path data;
  std::string trust;
  std::string json;
  double threshold = 1;
  std::vector<std::string> sets = {"occupancy", "adult"};
  std::vector<int> nodes = {64, 128};
  std::vector<double> adversarial = {0, 0.25, 0.5};
  bool quick = false;
  StudyOptions study;
};

void add_options(CLI::App& app, RegretSettings& settings) {
  app.add_option("--data", settings.data, "The folder of the data")->envname("SOTTO_DATA");
  app.add_option("--trust", settings.trust,
                 "A list of ratings; by default trust/soc-sign-bitcoinalpha.csv there");
  app.add_option("--threshold", settings.threshold, "The lowest rating that is trust")
      ->capture_default_str();
  app.add_option("--sets", settings.sets, "Of occupancy, adult")
      ->delimiter(',')
      ->check(CLI::IsMember({"occupancy", "adult"}))
      ->capture_default_str();
  app.add_option("--nodes", settings.nodes, "Sizes of the cut")
      ->delimiter(',')
      ->check(CLI::Range(2, 4096))
      ->capture_default_str();
  app.add_option("--adversarial", settings.adversarial,
                 "The part of the examples that are dealt out unlike")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--unlike", settings.study.stream.unlike, "How: label, dirichlet:ALPHA")
      ->capture_default_str();
  app.add_option("--batch", settings.study.stream.batch, "Examples a node and round")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--rates", settings.study.rates, "Learning rates, the same for all learners")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seeds", settings.study.seeds, "How many; they are 1, 2, …")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--threads", settings.study.threads, "Results do not depend on it")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_flag("--quick", settings.quick, "Occupancy, 64 nodes, 2 seeds, stochastic only");
  app.add_option("--json", settings.json, "Also write all regrets to this file");
}

std::shared_ptr<const Dataset> load(const RegretSettings& settings, const std::string& set) {
  return pooled(set == "adult"
                    ? load_libsvm(settings.data / "adult" / "a9a.t", {.features = kAdultFeatures})
                    : load_occupancy(settings.data / "occupancy"));
}

void run(RegretSettings settings) {
  if (settings.data.empty()) {
    refuse("data", "none", "name the folder of the data with --data or SOTTO_DATA");
  }
  if (settings.trust.empty()) {
    settings.trust = (settings.data / "trust" / "soc-sign-bitcoinalpha.csv").string();
  }
  if (settings.quick) {
    settings.sets = {"occupancy"};
    settings.nodes = {64};
    settings.adversarial = {0};
    settings.study.seeds = 2;
  }
  const JsonFile out(settings.json);
  Json all = {{"threshold", settings.threshold}};
  const std::string file = fmt::format("file:{},threshold={}", settings.trust, settings.threshold);
  for (const int nodes : settings.nodes) {
    const auto entrants = learners(file, nodes);
    for (const std::string& set : settings.sets) {
      const auto pool = load(settings, set);
      for (const double adversarial : settings.adversarial) {
        StudyOptions study = settings.study;
        study.stream.nodes = nodes;
        study.stream.adversarial = adversarial;
        Case result = run_case(pool, entrants, study);
        result.data = set;
        fmt::print("{}\n", report(result, study));
        std::fflush(stdout);
        all["cases"].push_back(to_json(result, study));
      }
    }
  }
  out.write(all);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The regret of online learners over a one-sided trust graph.", "online_regret");
  RegretSettings settings;
  settings.study.threads = std::max(1U, std::thread::hardware_concurrency());
  add_options(app, settings);
  return bench::run_main(app, argc, argv, [&] {
    run(settings);
    return console::kDone;
  });
}

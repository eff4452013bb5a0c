// `netlab heldout`: runs that calibration has not seen, predicted and real.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include <sotto/console/option_group.h>
#include <sotto/console/signals.h>

#include "bench/netlab/command_options.h"
#include "bench/netlab/prediction/calibration.h"
#include "bench/netlab/prediction/comparison.h"
#include "bench/netlab/prediction/comparison_report.h"
#include "bench/netlab/prediction/drawn_scenario.h"
#include "bench/netlab/prediction/predicted_run.h"
#include "bench/netlab/prediction/scenario_text.h"
#include "bench/support/statistics.h"
#include "commands.h"

namespace sotto::netlab {
namespace {

constexpr const char* kHeldoutExamples =
    "Examples:\n"
    "  netlab heldout\n"
    "  netlab heldout --runs 12 --json heldout.json\n"
    "  netlab heldout --drawn --seed 815 --runs 60\n"
    "  netlab heldout --drawn --trunks --losses --seed 816\n"
    "The 432 cells are 2 transports × 3 codecs × 3 latencies × 3 bandwidths × 4 graphs × 2 numbers "
    "of nodes; run k takes cell 11 k mod 432: all once in 432 runs, and in fewer not each figure "
    "equally often.";

constexpr std::size_t kStep = 11;
/// A run has as many rounds as are predicted to take so long, within these.
constexpr double kRunSeconds = 4;
constexpr std::uint64_t kFewestRounds = 5;
constexpr std::uint64_t kMostRounds = 100;

constexpr std::array<const char*, 2> kTransports = {"gloo", "zmq"};
constexpr std::array<double, 3> kLatencies_ms = {1, 20, 100};
constexpr std::array<double, 3> kBandwidths_mbit = {2, 10, 100};
constexpr std::array<const char*, 4> kGraphs = {"ring", "torus", "complete", "exponential"};
constexpr std::array<int, 2> kNodes = {4, 8};
/// On undirected graphs, and in push-sum on directed ones.
constexpr std::array<const char*, 3> kUndirected = {"dpsgd", "dcd quant:8", "choco sign"};
constexpr std::array<const char*, 3> kDirected = {"pushsum", "pushsum quant:8,rounding=nearest",
                                                  "pushsum sign"};
constexpr std::size_t kCells = kTransports.size() * kUndirected.size() * kLatencies_ms.size() *
                               kBandwidths_mbit.size() * kGraphs.size() * kNodes.size();

/// A run on a network, of any number of rounds.
struct Held {
  std::string title;
  std::string words;
  std::string transport;
  std::function<std::string(std::uint64_t rounds)> text;
};

Held cell(std::size_t number) {
  const auto take = [&](const auto& values) {
    const std::size_t digit = number % values.size();
    number /= values.size();
    return digit;
  };
  MadeScenario made;
  const std::string transport = kTransports[take(kTransports)];
  const std::size_t codec = take(kUndirected);
  made.latency_ms = kLatencies_ms[take(kLatencies_ms)];
  made.mbit_per_s = kBandwidths_mbit[take(kBandwidths_mbit)];
  const std::string graph = kGraphs[take(kGraphs)];
  made.nodes = kNodes[take(kNodes)];
  made.words =
      fmt::format("{} {}", (graph == "exponential" ? kDirected : kUndirected)[codec], graph);
  made.gradient = "lognormal:20 ms,0.2";
  made.title =
      fmt::format("{} nodes, {} Mbit/s, {} ms", made.nodes, made.mbit_per_s, made.latency_ms);
  return {made.title, made.words, transport, [made](std::uint64_t rounds) {
            MadeScenario of = made;
            of.rounds = rounds;
            return of.text();
          }};
}

Held drawn(std::uint64_t seed, std::uint64_t number, const DrawnKinds& kinds) {
  const DrawnScenario made = draw_scenario(seed, number, kFewestRounds, kinds);
  return {made.title, made.words, made.transport, [seed, number, kinds](std::uint64_t rounds) {
            return draw_scenario(seed, number, rounds, kinds).text;
          }};
}

struct HeldoutRequest {
  CommandOptions options;
  std::uint64_t runs = 40;
  std::uint64_t first = 0;
  bool drawn = false;
  DrawnKinds kinds;
};

/// Chosen by prediction alone.
std::uint64_t rounds_for(const Held& held, const Calibration& calibration) {
  const auto predicted = predicted_run(
      calibrated(scenario_from(held.text(kFewestRounds)), calibration, held.transport), held.words);
  if (!predicted.ok()) {
    return kFewestRounds;
  }
  const double each = predicted->virtual_s / kFewestRounds;
  const auto rounds = static_cast<std::uint64_t>(std::llround(kRunSeconds / each));
  return std::clamp(rounds, kFewestRounds, kMostRounds);
}

class Table {
 public:
  void add(const Held& held, const Comparison& found) {
    std::vector<std::string> row = {held.title};
    const auto rest = comparison_row(found);
    row.insert(row.end(), rest.begin(), rest.end());
    rows_.push_back(std::move(row));
    json_.push_back(comparison_json(found));
    complete_ = complete_ && found.ok();
    exact_ = exact_ && found.bytes_equal;
    same_models_ = same_models_ && found.parameters_equal;
    if (found.ok()) {
      const auto rounds = static_cast<double>(found.rounds);
      errors_.push_back(std::abs(found.error()));
      predicted_.push_back(found.predicted_s / rounds);
      measured_.push_back(found.measured_s / rounds);
    }
  }

  void show(const console::Output& output) const {
    std::vector<std::string> titles = {"network"};
    const auto rest = comparison_titles();
    titles.insert(titles.end(), rest.begin(), rest.end());
    output.table(titles, rows_);
    output.line(fmt::format(
        "{} runs: error median {:.1f} %, 95th percentile {:.1f} %, worst {:.1f} %; Kendall τ of "
        "the times of a round {:.3f}; bytes over every edge {}; models {}",
        errors_.size(), 100 * bench::quantile(errors_, 0.5), 100 * bench::quantile(errors_, 0.95),
        100 * bench::quantile(errors_, 1), bench::kendall_tau(predicted_, measured_),
        exact_ ? "exact" : "NOT exact", same_models_ ? "equal bit for bit" : "NOT equal"));
  }

  Json json() const {
    return {{"runs", json_},
            {"error_median", bench::quantile(errors_, 0.5)},
            {"error_95", bench::quantile(errors_, 0.95)},
            {"error_worst", bench::quantile(errors_, 1)},
            {"kendall_tau", bench::kendall_tau(predicted_, measured_)},
            {"bytes_exact", exact_},
            {"models_equal", same_models_}};
  }
  /// Every run was done, and did what was predicted but for its time.
  bool holds() const { return complete_ && exact_ && same_models_; }

 private:
  std::vector<std::vector<std::string>> rows_;
  Json json_ = Json::array();
  std::vector<double> errors_;
  std::vector<double> predicted_;
  std::vector<double> measured_;
  bool complete_ = true;
  bool exact_ = true;
  bool same_models_ = true;
};

int run(const HeldoutRequest& request) {
  const console::Output output(request.options.common);
  console::catch_stop_signals();
  const RealProgram program = request.options.real_program();
  const auto calibration = calibrate({kTransports.begin(), kTransports.end()}, program);
  if (!calibration.ok()) {
    return failed("calibration failed: " + calibration.status().message());
  }
  for (const char* transport : kTransports) {
    output.line(calibration_toml(*calibration, transport));
  }
  const std::uint64_t seed = request.options.common.seed;
  if (request.drawn) {
    output.line(fmt::format("drawn with --seed {}{}{}", seed,
                            request.kinds.trunks ? " --trunks" : "",
                            request.kinds.losses ? " --losses" : ""));
  }
  Table table;
  for (std::uint64_t k = request.first; k < request.first + request.runs; ++k) {
    if (console::stop_requested()) {
      return console::kFailed;
    }
    const Held next = request.drawn ? drawn(seed, k, request.kinds) : cell(kStep * k % kCells);
    const Comparison found =
        compare(calibrated(scenario_from(next.text(rounds_for(next, *calibration))), *calibration,
                           next.transport),
                next.words, next.transport, program);
    table.add(next, found);
    output.line(
        fmt::format("run {} of {}: {}, {}, {}: {}", k - request.first + 1, request.runs, next.title,
                    next.words, next.transport,
                    found.ok() ? fmt::format("{:+.1f} %", 100 * found.error()) : found.failure));
  }
  table.show(output);
  Json result = {{"sotto", SOTTO_VERSION},
                 {"drawn_with_seed", request.drawn ? Json(seed) : Json()},
                 {"calibration", calibration_json(*calibration)}};
  result.update(table.json());
  output.json(result);
  return table.holds() ? console::kDone : console::kFailed;
}

}  // namespace

console::Command add_heldout_command(CLI::App& netlab, const std::string& program) {
  auto request = std::make_shared<HeldoutRequest>();
  request->options.program = program;
  CLI::App* command = netlab.add_subcommand(
      "heldout", "Predicts runs after calibrating on two nodes, and holds them to the real ones");
  console::OptionGroup group(*command, "Which runs");
  group.count("--runs", request->runs, "N", "How many", kCells);
  group.count("--first", request->first, "K", "The number of the first", kCells);
  group.flag("--drawn", request->drawn,
             "In place of the cells runs that --seed draws: unequal lines, far halves, changes, "
             "algorithms of all families");
  group.flag("--trunks", request->kinds.trunks,
             "Runs that are drawn also have trunks that several links share");
  group.flag("--losses", request->kinds.losses,
             "Runs that are drawn also have links that lose packets, of which one run is chance");
  add_command_options(*command, request->options);
  command->remove_option(command->get_option("--transport"));
  command->footer(kHeldoutExamples);
  return {command, [request] { return run(*request); }};
}

}  // namespace sotto::netlab

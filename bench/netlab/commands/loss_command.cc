// `netlab loss`: runs over links that lose packets, predicted and real. What is lost is chance, in
// the simulator as on the links: a cell is run with several seeds, and means are compared.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/console/option_group.h>
#include <sotto/console/signals.h>
#include "bench/netlab/command_options.h"
#include "bench/netlab/prediction/calibration.h"
#include "commands.h"

#include "bench/netlab/prediction/comparison.h"
#include "bench/netlab/prediction/comparison_report.h"
#include "bench/netlab/prediction/predicted_run.h"
#include "bench/netlab/prediction/scenario_text.h"
#include "bench/support/statistics.h"

namespace sotto::netlab {
namespace {

constexpr const char* kLossExamples =
    "Examples:\n"
    "  netlab loss\n"
    "  netlab loss --seeds 10 --json loss.json\n"
    "  netlab loss --first 6 --cells 1 --seeds 20\n"
    "  netlab loss --first 18\n"
    "24 cells: 0.1, 0.5 and 2 % loss, round trips of 20, 100 and 300 ms, frames of 100 kB and 1.6 "
    "MB, and after them 5 and 15 % with frames of 100 kB; four nodes on a ring, 10 Mbit/s, Gloo "
    "and "
    "ZeroMQ by turns.";

constexpr std::array<double, 3> kLosses = {0.001, 0.005, 0.02};
constexpr std::array<double, 3> kLossLatencies_ms = {10, 50, 150};
constexpr std::array<const char*, 2> kModels = {"mlp:32", "mlp:512"};
constexpr std::array<const char*, 2> kLossTransports = {"gloo", "zmq"};
/// Losses of the cells behind those, which have the smaller model.
constexpr std::array<double, 2> kHeavyLosses = {0.05, 0.15};
constexpr std::size_t kLightCells = kLosses.size() * kLossLatencies_ms.size() * kModels.size();
constexpr std::size_t kLossCells = kLightCells + kHeavyLosses.size() * kLossLatencies_ms.size();
/// Seeds of which a prediction is the mean.
constexpr std::uint64_t kPredictions = 30;
/// A run has as many rounds as are predicted to take so long, within these.
constexpr double kLossRunSeconds = 5;
constexpr std::uint64_t kLossFewestRounds = 5;
constexpr std::uint64_t kLossMostRounds = 60;

struct LossRequest {
  CommandOptions options;
  std::uint64_t seeds = 4;
  std::uint64_t cells = kLossCells;
  std::uint64_t first = 0;
};

MadeScenario made_cell(double loss, double latency_ms, const char* model) {
  return {.title = fmt::format("{:g} % loss, {:g} ms, {}", 100 * loss, 2 * latency_ms, model),
          .words = "dpsgd ring",
          .nodes = 4,
          .mbit_per_s = 10,
          .latency_ms = latency_ms,
          .loss = loss,
          .model = model,
          .rounds = kLossFewestRounds};
}

MadeScenario loss_cell(std::size_t number) {
  if (number >= kLightCells) {
    const std::size_t heavy = number - kLightCells;
    return made_cell(kHeavyLosses[heavy / kLossLatencies_ms.size()],
                     kLossLatencies_ms[heavy % kLossLatencies_ms.size()], kModels.front());
  }
  return made_cell(kLosses[number % kLosses.size()],
                   kLossLatencies_ms[number / kLosses.size() % kLossLatencies_ms.size()],
                   kModels[number / kLosses.size() / kLossLatencies_ms.size()]);
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The standard error of the mean; 0 for fewer than two values.
double standard_error(const std::vector<double>& values) {
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) {
    sum += (value - middle) * (value - middle);
  }
  const auto n = static_cast<double>(values.size());
  return n < 2 ? 0 : std::sqrt(sum / (n - 1) / n);
}

class LossStudy {
 public:
  LossStudy(const Calibration& calibration, const RealProgram& program)
      : calibration_(calibration), program_(program) {}

  /// With the seeds after `from`. False when a run could not be done or did something else than was
  /// predicted.
  bool add(std::size_t number, std::uint64_t from, std::uint64_t seeds) {
    MadeScenario made = loss_cell(number);
    const std::string transport = kLossTransports[number % kLossTransports.size()];
    const double brief = mean(predicted(made, transport)) / kLossFewestRounds;
    made.rounds = std::clamp(static_cast<std::uint64_t>(std::llround(kLossRunSeconds / brief)),
                             kLossFewestRounds, kLossMostRounds);
    const auto expected = predicted(made, transport);
    std::vector<double> measured;
    for (made.seed = from + 1; made.seed <= from + seeds; ++made.seed) {
      const Comparison found =
          compare(scenario_of(made, transport), made.words, transport, program_);
      runs_.push_back(comparison_json(found));
      if (!found.as_predicted()) {
        (void)failed(fmt::format("{}, seed {}: {}", made.title, made.seed,
                                 found.ok() ? "bytes or models differ" : found.failure));
        return false;
      }
      measured.push_back(found.measured_s);
    }
    const double error = mean(expected) / mean(measured) - 1;
    errors_.push_back(std::abs(error));
    rows_.push_back({made.title, transport, fmt::to_string(made.rounds),
                     fmt::format("{:.2f} s", mean(expected)),
                     fmt::format("{:.2f} ± {:.2f} s", mean(measured), standard_error(measured)),
                     fmt::format("{:+.1f} %", 100 * error)});
    return true;
  }

  void show(const console::Output& output) const {
    output.table({"network", "transport", "rounds", "predicted", "measured", "error"}, rows_);
    if (!errors_.empty()) {
      output.line(fmt::format("{} cells: error median {:.1f} %, worst {:.1f} %", errors_.size(),
                              100 * bench::quantile(errors_, 0.5),
                              100 * bench::quantile(errors_, 1)));
    }
  }
  Json json() const {
    return {{"runs", runs_},
            {"error_median", bench::quantile(errors_, 0.5)},
            {"error_worst", bench::quantile(errors_, 1)}};
  }

 private:
  study::Scenario scenario_of(const MadeScenario& made, const std::string& transport) const {
    return calibrated(scenario_from(made.text()), calibration_, transport);
  }
  std::vector<double> predicted(MadeScenario made, const std::string& transport) const {
    std::vector<double> seconds;
    for (made.seed = 1; made.seed <= kPredictions; ++made.seed) {
      study::Scenario scenario = scenario_of(made, transport);
      scenario.timing_only = true;
      const auto run = predicted_run(scenario, made.words);
      if (!run.ok()) {
        throw Error(run.status().message());
      }
      seconds.push_back(run->virtual_s);
    }
    return seconds;
  }

  const Calibration& calibration_;
  const RealProgram& program_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<double> errors_;
  Json runs_ = Json::array();
};

int run(const LossRequest& request) {
  const console::Output output(request.options.common);
  console::catch_stop_signals();
  const RealProgram program = request.options.real_program();
  const auto calibration = calibrate({kLossTransports.begin(), kLossTransports.end()}, program);
  if (!calibration.ok()) {
    return failed("calibration failed: " + calibration.status().message());
  }
  LossStudy study(*calibration, program);
  bool complete = true;
  const std::uint64_t end = std::min<std::uint64_t>(request.first + request.cells, kLossCells);
  for (std::uint64_t number = request.first; number < end && !console::stop_requested(); ++number) {
    complete = study.add(number, request.options.common.seed, request.seeds) && complete;
  }
  if (console::stop_requested()) {
    return console::kFailed;
  }
  study.show(output);
  Json result = {{"sotto", SOTTO_VERSION}, {"calibration", calibration_json(*calibration)}};
  result.update(study.json());
  output.json(result);
  return complete ? console::kDone : console::kFailed;
}

}  // namespace

console::Command add_loss_command(CLI::App& netlab, const std::string& program) {
  auto request = std::make_shared<LossRequest>();
  request->options.program = program;
  CLI::App* command = netlab.add_subcommand(
      "loss", "Predicts runs over links that lose packets, and holds them to real ones");
  console::OptionGroup group(*command, "Which runs");
  group.count("--seeds", request->seeds, "N", "Runs of each cell", 1000);
  group.count("--cells", request->cells, "N", "How many cells", kLossCells);
  group.count("--first", request->first, "K", "The number of the first cell, from 0",
              kLossCells - 1);
  add_command_options(*command, request->options);
  command->remove_option(command->get_option("--transport"));
  command->footer(kLossExamples);
  return {command, [request] { return run(*request); }};
}

}  // namespace sotto::netlab

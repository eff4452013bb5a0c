// `netlab streams`: TCP streams over links that lose packets, drawn at random, predicted and
// measured. No program runs on the hosts: what is compared is the simulator's TCP with the
// kernel's.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>
#include <sotto/console/option_group.h>
#include <sotto/console/signals.h>

#include "bench/netlab/command_options.h"
#include "bench/netlab/network/network_namespace.h"
#include "bench/netlab/prediction/stream_cell.h"
#include "bench/support/statistics.h"
#include "commands.h"

namespace sotto::netlab {
namespace {

constexpr const char* kStreamsExamples =
    "Examples:\n"
    "  netlab streams --seed 4711\n"
    "  netlab streams --seed 4711 --congestion cubic --json cubic.json\n"
    "  netlab streams --seed 4712 --most-loss 0.1 --bursts\n"
    "Two hosts a cell send each other messages of 10 kB to 1 MB in turn over one connection: round "
    "trips of 10 to 300 ms, 5 to 200 Mbit/s. Sixteen cells run at a time.";

/// Cells that share one emulated network and its switch.
constexpr std::size_t kAtOnce = 16;
/// A cell whose messages take longer than planned is given up.
constexpr double kStreamPatience = 4;
/// Seeds of which a prediction is the mean, and of the one that says how many rounds there are.
constexpr int kStreamSeeds = 20;
constexpr int kTrialSeeds = 4;
constexpr int kTrialRounds = 20;
constexpr int kFewestMessages = 5;
constexpr int kMostMessages = 400;

struct StreamsRequest {
  console::CommonOptions common;
  std::string congestion = "reno";
  StreamRange range;
  std::uint64_t cells = 16;
  double seconds = 40;
};

/// A cell with the number of rounds that are predicted to take so many seconds.
StreamCell cell_of(const StreamsRequest& request, std::uint64_t number) {
  StreamCell cell = draw_cell(request.common.seed, number, request.range);
  cell.rounds = kTrialRounds;
  const double trial =
      predicted_seconds(cell, parse_congestion(request.congestion), 1, kTrialSeeds);
  cell.rounds = std::clamp(static_cast<int>(request.seconds * kTrialRounds / trial),
                           kFewestMessages, kMostMessages);
  return cell;
}

/// Seconds that each cell took; NaN for one that did not end.
std::vector<double> measure(const StreamsRequest& request, const std::vector<StreamCell>& cells) {
  EmulatedNetwork network({.hosts = 2 * static_cast<int>(cells.size()),
                           .free_net = false,
                           .seed = request.common.seed,
                           .congestion = request.congestion});
  std::vector<double> seconds(cells.size(), std::nan(""));
  const auto first_host = [](std::size_t cell) { return 2 * static_cast<Host>(cell); };
  for (std::size_t i = 0; i < cells.size(); ++i) {
    shape(network, cells[i], first_host(i), first_host(i) + 1);
  }
  run_side_by_side(cells.size(), "cells", [&](std::size_t i) {
    const auto took = measure_exchange(network, {.first = first_host(i),
                                                 .second = first_host(i) + 1,
                                                 .bytes = cells[i].bytes,
                                                 .rounds = cells[i].rounds,
                                                 .patience_s = kStreamPatience * request.seconds});
    if (took.ok()) {
      seconds[i] = *took;
    }
  });
  return seconds;
}

class StreamsStudy {
 public:
  void add(const StreamCell& cell, double predicted, double measured) {
    const bool ended = std::isfinite(measured);
    const double error = predicted / measured - 1;
    rows_.push_back(
        {fmt::format("{:.2f} %", 100 * cell.loss),
         cell.loss_burst > 0 ? fmt::format("{:.1f}", cell.loss_burst) : "–",
         fmt::format("{:.0f} ms", cell.round_trip_ms),
         fmt::format("{:.0f} Mbit/s", cell.mbit_per_s),
         fmt::format("{} × {:.0f} kB", cell.rounds, 1e-3 * static_cast<double>(cell.bytes)),
         fmt::format("{:.1f} s", predicted),
         ended ? fmt::format("{:.1f} s", measured) : "did not end",
         ended ? fmt::format("{:+.1f} %", 100 * error) : "–"});
    cells_.push_back({{"loss", cell.loss},
                      {"loss_burst", cell.loss_burst},
                      {"round_trip_ms", cell.round_trip_ms},
                      {"mbit_per_s", cell.mbit_per_s},
                      {"bytes", cell.bytes},
                      {"rounds", cell.rounds},
                      {"predicted_s", predicted},
                      {"measured_s", ended ? Json(measured) : Json()}});
    if (ended) {
      errors_.push_back(std::abs(error));
    }
  }
  void show(const console::Output& output, const StreamsRequest& request) const {
    output.table({"loss", "in a row", "round trip", "bandwidth", "messages", "predicted",
                  "measured", "error"},
                 rows_);
    if (!errors_.empty()) {
      output.line(
          fmt::format("{}, seed {}: of {} cells {} ended, error median {:.1f} %, worst "
                      "{:.1f} %",
                      request.congestion, request.common.seed, rows_.size(), errors_.size(),
                      100 * bench::quantile(errors_, 0.5), 100 * bench::quantile(errors_, 1)));
    }
    output.json({{"sotto", SOTTO_VERSION},
                 {"congestion", request.congestion},
                 {"seed", request.common.seed},
                 {"cells", cells_},
                 {"error_median", bench::quantile(errors_, 0.5)},
                 {"error_worst", bench::quantile(errors_, 1)}});
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<double> errors_;
  Json cells_ = Json::array();
};

int run(const StreamsRequest& request) {
  const console::Output output(request.common);
  const Congestion congestion = parse_congestion(request.congestion);
  if (const auto why = unavailable()) {
    return failed(*why);
  }
  console::catch_stop_signals();
  StreamsStudy study;
  for (std::uint64_t first = 0; first < request.cells; first += kAtOnce) {
    std::vector<StreamCell> cells;
    for (std::uint64_t k = first; k < std::min(first + kAtOnce, request.cells); ++k) {
      cells.push_back(cell_of(request, k));
    }
    const std::vector<double> measured = measure(request, cells);
    if (console::stop_requested()) {
      return console::kFailed;
    }
    for (std::size_t i = 0; i < cells.size(); ++i) {
      study.add(cells[i], predicted_seconds(cells[i], congestion, 100, kStreamSeeds), measured[i]);
    }
  }
  study.show(output, request);
  return console::kDone;
}

}  // namespace

console::Command add_streams_command(CLI::App& netlab) {
  auto request = std::make_shared<StreamsRequest>();
  CLI::App* command = netlab.add_subcommand(
      "streams", "Predicts TCP over links that lose packets, and holds it to the kernel's");
  console::OptionGroup group(*command, "Which streams");
  group.option("--congestion", request->congestion, "NAME", "reno, cubic or bbr");
  group.option("--least-loss", request->range.least_loss, "SHARE", "Of the packets, at least");
  group.option("--most-loss", request->range.most_loss, "SHARE", "Of the packets, at most");
  group.flag("--bursts", request->range.bursts, "Packets are lost 1.2 to 2 in a row, on average");
  group.count("--cells", request->cells, "N", "How many cells", 1000);
  group.option("--seconds", request->seconds, "S", "How long a cell takes, as predicted");
  console::add_common_options(*command, request->common);
  command->remove_option(command->get_option("--config"));
  command->footer(kStreamsExamples);
  return {command, [request] { return run(*request); }};
}

}  // namespace sotto::netlab

// `sotto bench sim`: messages per second of the simulator, with SimGrid beside it in the same run
// on the same exchange; and large jobs, for their wall time and memory.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/study/units.h>

#include "bench_job.h"
#include "bench_ring.h"
#include "commands.h"
#include "program_output.h"

namespace sotto::cli {
namespace {

constexpr const char* kBenchSimExamples =
    "Examples:\n"
    "  sotto bench sim\n"
    "  sotto bench sim --nodes 1024 --seconds 5 --json -\n"
    "  sotto bench sim --job train         10,000 nodes with real gradients, 100 rounds\n"
    "  sotto bench sim --job rehearse      100,000 nodes, timing only, 50 rounds";

constexpr int kMostNodes = 1'000'000;
constexpr const char* kPlayer = "sotto-simgrid-ring";

struct BenchSimRequest {
  console::CommonOptions common;
  std::string job = "exchange";
  std::vector<int> nodes;
  double seconds = 1;
  std::size_t dimension = 1000;
  std::optional<Round> rounds;
  int threads = 1;
};

std::string rate(double messages_per_s) {
  return messages_per_s < 1e6 ? fmt::format("{:.0f} k", messages_per_s / 1e3)
                              : fmt::format("{:.1f} M", messages_per_s / 1e6);
}

/// What one exchange gave.
struct SimRow {
  int nodes = 0;
  bool contention = false;
  double sotto = 0;
  std::optional<double> simgrid = std::nullopt;
};

Result<SimRow> measure(int nodes, bool contention, double seconds, const std::string& player) {
  std::vector<RingGame> games = {[&](int rounds) { return play_sotto(nodes, contention, rounds); }};
  if (!player.empty()) {
    games.emplace_back([&](int rounds) { return play_simgrid(player, nodes, contention, rounds); });
  }
  const auto found = measure_rings(games, seconds);
  if (!found.ok()) {
    return found.status();
  }
  SimRow row = {.nodes = nodes, .contention = contention, .sotto = found->front()};
  if (!player.empty()) {
    row.simgrid = found->back();
  }
  return row;
}

void show(const std::vector<SimRow>& rows, const console::Output& output) {
  std::vector<std::vector<std::string>> cells;
  cells.reserve(rows.size());
  for (const SimRow& row : rows) {
    cells.push_back({fmt::to_string(row.nodes), row.contention ? "yes" : "no",
                     row.simgrid ? rate(*row.simgrid) : "–", rate(row.sotto),
                     row.simgrid ? fmt::format("{:.3g}", row.sotto / *row.simgrid) : "–"});
  }
  output.table({"nodes", "contention", "SimGrid", "sotto", "sotto ÷ SimGrid"}, cells);
}

Json results_of(const std::vector<SimRow>& rows) {
  Json results = Json::array();
  for (const SimRow& row : rows) {
    const auto entry = [&](const char* engine, double messages_per_s) {
      return Json{{"engine", engine},
                  {"nodes", row.nodes},
                  {"contention", row.contention},
                  {"messages_per_s", messages_per_s}};
    };
    if (row.simgrid) {
      results.push_back(entry("simgrid", *row.simgrid));
    }
    results.push_back(entry("sotto", row.sotto));
    if (row.simgrid) {
      results.back()["ratio_to_simgrid"] = row.sotto / *row.simgrid;
    }
  }
  return results;
}

int run_exchange(const BenchSimRequest& request, const console::Output& output) {
  console::catch_stop_signals();
  const std::string player = program_beside(kPlayer);
  if (player.empty()) {
    output.line(
        fmt::format("SimGrid is not measured: {0} is not beside this program. Where libsimgrid-dev "
                    "was installed when CMake was run, `cmake --build build --target simgrid_ring` "
                    "builds it",
                    kPlayer));
  }
  output.line("messages a second of processor time: a ring of 100 kB messages on a star of hosts");
  std::vector<SimRow> rows;
  for (const bool contention : {false, true}) {
    for (const int nodes :
         request.nodes.empty() ? std::vector<int>{64, 1024, 4096} : request.nodes) {
      const auto row = measure(nodes, contention, request.seconds, player);
      if (!row.ok()) {
        console::say(row.status().message());
        return console::kFailed;
      }
      rows.push_back(*row);
    }
  }
  show(rows, output);
  output.json({{"sotto", SOTTO_VERSION}, {"results", results_of(rows)}});
  return console::kDone;
}

int run_job(const BenchSimRequest& request, const console::Output& output) {
  const bool train = request.job == "train";
  Json results = Json::array();
  std::vector<std::vector<std::string>> cells;
  for (const int nodes :
       request.nodes.empty() ? std::vector<int>{train ? 10'000 : 100'000} : request.nodes) {
    const Json result = play_job({.real_gradients = train,
                                  .nodes = nodes,
                                  .dimension = request.dimension,
                                  .rounds = request.rounds.value_or(train ? 100 : 50),
                                  .threads = request.threads});
    cells.push_back({request.job, fmt::to_string(nodes), fmt::to_string(request.dimension),
                     fmt::to_string(result.at("rounds").get<Round>()),
                     fmt::format("{:.1f} s", result.at("wall_s").get<double>()),
                     study::amount(result.at("peak_memory_bytes").get<double>()),
                     fmt::format("{:.4g} s", result.at("virtual_s").get<double>())});
    results.push_back(result);
  }
  output.table({"job", "nodes", "elements", "rounds", "wall time", "peak memory", "virtual time"},
               cells);
  output.json({{"sotto", SOTTO_VERSION}, {"results", results}});
  return console::kDone;
}

int run_bench(const BenchSimRequest& request) {
  for (const int nodes : request.nodes) {
    if (nodes < 3 || nodes > kMostNodes) {
      refuse("nodes", fmt::to_string(nodes), fmt::format("it must be 3 to {}", kMostNodes));
    }
  }
  if (!(request.seconds > 0 && request.seconds <= 600)) {
    refuse("seconds", fmt::to_string(request.seconds), "it must be above 0 and at most 600");
  }
  for (const auto& [option, given] : {std::pair("dimension", request.dimension >= 1),
                                      {"rounds", request.rounds != Round{0}},
                                      {"threads", request.threads >= 1}}) {
    if (!given) {
      refuse(option, "0", "it must be at least 1");
    }
  }
  const console::Output output(request.common);
  if (request.job == "exchange") {
    return run_exchange(request, output);
  }
  if (request.job == "train" || request.job == "rehearse") {
    return run_job(request, output);
  }
  refuse("job", request.job, "it is exchange, train or rehearse");
}

}  // namespace

console::Command add_bench_sim_command(CLI::App& bench) {
  auto request = std::make_shared<BenchSimRequest>();
  CLI::App* command =
      bench.add_subcommand("sim", "The simulator beside SimGrid, and how large a job it takes");
  console::OptionGroup group(*command, "What is measured");
  group.option("--job", request->job, "exchange|train|rehearse",
               "Messages a second of a ring exchange; or the wall time and memory of a whole job, "
               "with real gradients or with timing only");
  group.counts("--nodes", request->nodes, "LIST",
               "Node counts, with commas between; 64,1024,4096, of jobs 10000 and 100000");
  group.option("--seconds", request->seconds, "S", "How long each engine plays an exchange, about");
  group.count("--dimension", request->dimension, "N", "Of jobs: elements of the model", 1U << 30U);
  group.count("--rounds", request->rounds, "N", "Of jobs: 100, with timing only 50");
  group.count("--threads", request->threads, "N", "Of jobs: threads that take gradients", 1024);
  return completed(*command, request, kBenchSimExamples, run_bench);
}

}  // namespace sotto::cli

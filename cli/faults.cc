// `sotto faults`: a plan of faults, played on simulated sites under many seeds. On real ones
// bench/sitelab plays it.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/base/start_threads.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/sites/faults/fault_plan.h>
#include <sotto/sites/simulated/simulated_sites.h>
#include <sotto/study/json/fault_report.h>
#include <sotto/study/scenario/fault_file.h>
#include <sotto/study/units.h>

#include "commands.h"
#include "terminal/progress_line.h"

namespace sotto::cli {
namespace {

constexpr const char* kFaultsExamples =
    "Examples:\n"
    "  sotto faults examples/faults/soak.toml --seeds 100\n"
    "  sotto faults examples/faults/soak.toml --seed 17 --trace trace.txt\n"
    "Every seed draws other faults, delays and targets; the same seed gives the same run, to the "
    "byte. What is checked after every event: docs/faults.md. On real sites build/bench/sitelab "
    "PLAN of sotto's sources plays a plan.";

constexpr std::uint64_t kMostSeeds = 1'000'000;
constexpr std::uint64_t kMostTraceLines = 2'000'000;

struct FaultsOptions {
  console::CommonOptions common;
  std::string plan;
  std::uint64_t seeds = 1;
  std::uint64_t threads = 0;
  std::string trace;
};

/// Runs the seeds from `first` on, `threads` at a time. Results do not depend on that: they are
/// taken in the order of seeds, up to the first that fails.
std::vector<SimulatedSitesReport> run_seeds(const FaultPlan& plan, std::uint64_t first,
                                            std::uint64_t count, std::size_t threads,
                                            ProgressLine& bar) {
  std::vector<SimulatedSitesReport> reports(count);
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::uint64_t> end{count};  // seeds from here on are not wanted
  const auto work = [&](bool draws) {
    for (std::uint64_t i = next++; i < end && !console::stop_requested(); i = next++) {
      reports[i] = simulate_sites(
          plan, {.seed = first + i, .stop = [] { return console::stop_requested().load(); }});
      if (reports[i].violation) {
        for (std::uint64_t seen = end; seen > i + 1 && !end.compare_exchange_weak(seen, i + 1);) {
        }
      }
      ++done;
      if (draws) {
        bar.bar(done, count, fmt::format("seed {}/{}", done.load(), count));
      }
    }
  };
  auto helpers = start_threads(
      std::max<std::uint64_t>(std::min<std::uint64_t>(threads, count), 1) - 1, "seeds",
      [&work](std::size_t) { work(false); }, [&end] { end = 0; });
  work(true);
  for (std::thread& helper : helpers) {
    helper.join();
  }
  reports.resize(end);
  return reports;
}

/// Runs one seed and writes what happens, line by line.
SimulatedSitesReport run_traced(const FaultPlan& plan, std::uint64_t seed,
                                const std::string& path) {
  std::string text;
  std::uint64_t lines = 0;
  SimulatedSitesReport report =
      simulate_sites(plan, {.seed = seed,
                            .trace =
                                [&](const SimulatedSiteEvent& event) {
                                  if (++lines <= kMostTraceLines) {
                                    text += to_string(event) + '\n';
                                  }
                                },
                            .stop = [] { return console::stop_requested().load(); }});
  if (lines > kMostTraceLines) {
    text += fmt::format("{} more lines are left out\n", lines - kMostTraceLines);
  }
  write_result_file("trace", path, text);
  return report;
}

/// Shows how often each kind of fault happened, as fault_kinds() numbers them, and returns the sum.
std::uint64_t show_injected(std::span<const std::uint64_t> injected,
                            const console::Output& output) {
  std::vector<std::vector<std::string>> rows;
  std::uint64_t all = 0;
  for (const auto& [kind, times] : faults_that_happened(injected)) {
    all += times;
    rows.push_back({std::string(kind->name), fmt::to_string(times), std::string(kind->summary)});
  }
  if (!rows.empty()) {
    output.table({"fault", "times", "what it is"}, rows);
    output.line("");
  }
  return all;
}

void show(const FaultPlan& plan, const study::FaultSummary& summary,
          const console::Output& output) {
  output.line(fmt::format("{}: {}, {} under {}", plan.title,
                          study::counted(static_cast<std::uint64_t>(plan.sites), "site"),
                          plan.graph, study::counted(summary.runs, "seed")));
  const std::uint64_t all = show_injected(summary.injected, output);
  output.table(
      {"what", "found"},
      {{"faults", fmt::to_string(all)},
       {"events", fmt::to_string(summary.events)},
       {"rounds of a site in the end",
        fmt::format("{} … {}", summary.rounds_least, summary.rounds_most)},
       {"states given up", fmt::to_string(summary.resets)},
       {"longest recovery", fmt::format("{:.3f} s", to_seconds(summary.worst_recovery))},
       {"largest error of mass", fmt::format("{:.2e}", summary.worst_mass_error)},
       {"largest error of models", fmt::format("{:.3g}", summary.worst_error)},
       {"pulls cut, models put back", fmt::format("{}, {}", summary.cuts, summary.put_backs)},
       {"peers to be asked about", fmt::to_string(summary.habits)},
       {"most parcels waiting from a peer", fmt::to_string(summary.most_pending)},
       {"largest state", study::amount(static_cast<double>(summary.largest_state))}});
}

int run(const FaultsOptions& options) {
  check_writable("trace", options.trace);
  const FaultPlan plan = study::read_fault_plan(options.plan);
  check_sites(plan);
  const console::Output output(options.common);
  if (!options.trace.empty() && options.seeds > 1) {
    refuse("trace", options.trace, "it is of one run; give --seeds 1");
  }
  if (options.seeds == 0) {
    refuse("seeds", "0", "at least one is run");
  }
  console::catch_stop_signals();
  const std::uint64_t seed = options.common.seed;
  std::vector<SimulatedSitesReport> reports;
  if (options.trace.empty()) {
    ProgressLine bar(output.talks() && options.seeds > 1);
    const auto cores = std::max(1U, std::thread::hardware_concurrency());
    reports =
        run_seeds(plan, seed, options.seeds, options.threads > 0 ? options.threads : cores, bar);
  } else {
    reports.push_back(run_traced(plan, seed, options.trace));
    output.line(fmt::format("trace: {}", options.trace));
  }
  if (console::stop_requested()) {
    console::say("interrupted");
    return console::kFailed;
  }
  const study::FaultSummary summary = study::summary_of(reports);
  const SimulatedSitesReport* failed =
      !reports.empty() && reports.back().violation ? &reports.back() : nullptr;
  show(plan, summary, output);
  output.json(study::faults_json(plan, summary, reports));
  if (failed == nullptr) {
    output.line("everything held");
    return console::kDone;
  }
  const SimulatedSiteViolation& violation = *failed->violation;
  console::say(fmt::format(
      "seed {}, at {:.9f} s: {}: {}{}", failed->seed, to_seconds(violation.time), violation.during,
      violation.site >= 0 ? fmt::format("site {} ", violation.site) : "", violation.what));
  console::say(fmt::format("to see it again: sotto faults {} --seed {} --trace trace.txt",
                           options.plan, failed->seed));
  return console::kFailed;
}

}  // namespace

console::Command add_faults_command(CLI::App& program) {
  auto options = std::make_shared<FaultsOptions>();
  CLI::App* command = program.add_subcommand(
      "faults", "Plays a plan of faults on simulated sites, and checks that nothing is lost");
  console::OptionGroup group(*command, "What is played");
  group.option("PLAN", options->plan, "FILE.toml", "The plan").required();
  group.count("--seeds", options->seeds, "N", "Runs, with the seeds from --seed on", kMostSeeds);
  group.count("--threads", options->threads, "N",
              "Runs at a time; by default one a core. Results do not depend on it", 1024);
  group.option("--trace", options->trace, "FILE", "Write what happens in a run, line by line");
  return completed(*command, options, kFaultsExamples, run);
}

}  // namespace sotto::cli

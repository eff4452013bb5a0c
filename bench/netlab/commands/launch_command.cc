// `netlab launch`: a program of the caller's own on every host of one network, as a launcher starts
// it, with several sets of arguments in turns.
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/console/option_group.h>
#include <sotto/console/signals.h>
#include <sotto/study/units.h>

#include "bench/netlab/command_options.h"
#include "bench/netlab/contest/contender_job.h"
#include "bench/netlab/contest/contender_result.h"
#include "bench/support/command_line.h"
#include "bench/support/statistics.h"
#include "commands.h"

namespace sotto::netlab {
namespace {

constexpr const char* kLaunchExamples =
    "Examples:\n"
    "  netlab launch --hosts 4 -- build/examples/torch/torch_train_gpt input.txt --bind {address}\n"
    "  netlab launch --hosts 4 --try 'all-reduce: --algorithm allreduce' --try 'dcd: --compressor "
    "quant:4' \\\n    -- build/examples/torch/torch_train_gpt input.txt --bind {address}\n"
    "Each process finds RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment, and its "
    "host's address where {address} stands. The time is from the start of the processes to the end "
    "of the last; the ratio is the first set's time over that of another, of the same repeat.";

constexpr int kLaunchPort = 29'500;

/// A set of arguments, and how its runs went.
struct Attempt {
  std::string name;
  std::vector<std::string> words;
  std::vector<std::optional<double>> seconds;  ///< the time of each repeat
  std::uint64_t carried = 0;                   ///< bytes on the wire in the last run, of all hosts
  std::string said;                            ///< the last line of node 0, in the last run
  std::string failure;
};

struct LaunchRequest {
  console::CommonOptions common;
  TestbedShape testbed{.hosts = 4};
  std::vector<std::string> words;
  std::vector<std::string> attempts;
  std::uint64_t repeats = 1;
  double patience_s = 3600;
};

/// "NAME: ARG ARG…"
Attempt attempt_of(const std::string& text) {
  const auto colon = text.find(": ");
  if (colon == std::string::npos || colon == 0) {
    refuse("--try", text, "it is 'NAME: ARGUMENT ARGUMENT …'");
  }
  Attempt attempt;
  attempt.name = text.substr(0, colon);
  std::istringstream in(text.substr(colon + 2));
  for (std::string word; in >> word;) {
    attempt.words.push_back(word);
  }
  return attempt;
}

std::vector<Attempt> attempts_of(const LaunchRequest& request) {
  std::vector<Attempt> attempts;
  for (const std::string& text : request.attempts) {
    attempts.push_back(attempt_of(text));
  }
  if (attempts.empty()) {
    attempts.emplace_back().name = "as it is";
  }
  return attempts;
}

std::vector<Process> processes_for(const LaunchRequest& request, const Attempt& attempt,
                                   const Testbed& testbed) {
  std::vector<Process> processes;
  for (Host host = 0; host < testbed.hosts(); ++host) {
    Process process = {.host = host,
                       .words = request.words,
                       .variables = {{"RANK", fmt::to_string(host)},
                                     {"WORLD_SIZE", fmt::to_string(testbed.hosts())},
                                     {"MASTER_ADDR", testbed.address(0)},
                                     {"MASTER_PORT", fmt::to_string(kLaunchPort)}}};
    process.words.insert(process.words.end(), attempt.words.begin(), attempt.words.end());
    for (std::string& word : process.words) {
      constexpr std::string_view kAddress = "{address}";
      if (const auto at = word.find(kAddress); at != std::string::npos) {
        word.replace(at, kAddress.size(), testbed.address(host));
      }
    }
    processes.push_back(std::move(process));
  }
  return processes;
}

void run_once(const LaunchRequest& request, const Testbed& testbed, Attempt& attempt) {
  const auto begin = std::chrono::steady_clock::now();
  const auto end = run_job(testbed, processes_for(request, attempt, testbed), request.patience_s,
                           console::stop_requested());
  if (!end.ok()) {
    attempt.failure = end.status().message();
    attempt.seconds.emplace_back();
    return;
  }
  attempt.seconds.emplace_back(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  attempt.carried = end->carried;
  attempt.said = last_line(end->output);
}

bench::MedianSpread spread_of_runs(const Attempt& attempt) {
  std::vector<double> values;
  for (const auto& seconds : attempt.seconds) {
    if (seconds) {
      values.push_back(*seconds);
    }
  }
  return bench::spread_of(values);
}

/// The first one's time over this one's, by repeat.
std::vector<double> ratios(const Attempt& first, const Attempt& attempt) {
  std::vector<double> all;
  for (std::size_t i = 0; i < attempt.seconds.size() && i < first.seconds.size(); ++i) {
    if (first.seconds[i] && attempt.seconds[i]) {
      all.push_back(*first.seconds[i] / *attempt.seconds[i]);
    }
  }
  return all;
}

void show(const std::vector<Attempt>& attempts, const console::Output& output) {
  std::vector<std::vector<std::string>> rows;
  for (const Attempt& attempt : attempts) {
    const bench::MedianSpread spread = spread_of_runs(attempt);
    const auto ratio = ratios(attempts.front(), attempt);
    rows.push_back({attempt.name, ratio.empty() ? "–" : study::duration_text(spread.median),
                    spread_text(spread), study::amount(static_cast<double>(attempt.carried)),
                    ratio_text(ratio), attempt.failure.empty() ? attempt.said : attempt.failure});
  }
  output.table({"run", "time", "range", "wire", "ratio", "node 0's last line"}, rows);
}

int run(const LaunchRequest& request) {
  const console::Output output(request.common);
  if (request.repeats < 1) {
    refuse("--repeats", "0", "at least one is needed");
  }
  std::vector<Attempt> attempts = attempts_of(request);
  console::catch_stop_signals();
  const Testbed testbed(request.testbed);
  output.line(testbed.text());
  for (std::uint64_t repeat = 1; repeat <= request.repeats; ++repeat) {
    for (Attempt& attempt : attempts) {
      run_once(request, testbed, attempt);
      if (console::stop_requested()) {
        return console::kFailed;
      }
      if (!request.common.quiet) {
        fmt::print(stderr, "netlab: repeat {}/{}: {}: {}\n", repeat, request.repeats, attempt.name,
                   attempt.failure.empty() ? study::duration_text(*attempt.seconds.back())
                                           : attempt.failure);
      }
    }
  }
  show(attempts, output);
  Json runs = Json::array();
  std::string failure;
  for (const Attempt& attempt : attempts) {
    failure = failure.empty() ? attempt.failure : failure;
    runs.push_back(
        {{"name", attempt.name},
         {"time_s", bench::spread_json(spread_of_runs(attempt))},
         {"ratio", bench::spread_json(bench::spread_of(ratios(attempts.front(), attempt)))},
         {"wire_bytes", attempt.carried},
         {"said", attempt.said},
         {"failure", attempt.failure.empty() ? Json() : Json(attempt.failure)}});
  }
  output.json({{"sotto", SOTTO_VERSION},
               {"network", testbed.json()},
               {"repeats", request.repeats},
               {"runs", runs}});
  return failure.empty() ? console::kDone : failed(failure);
}

}  // namespace

console::Command add_launch_command(CLI::App& netlab) {
  auto request = std::make_shared<LaunchRequest>();
  CLI::App* command = netlab.add_subcommand(
      "launch", "Runs a program of your own on every host, as a launcher does");
  console::OptionGroup group(*command, "What is run");
  command->add_option("COMMAND", request->words, "The program and its arguments, behind `--`")
      ->required()
      ->group("What is run");
  group.list("--try", request->attempts, "'NAME: ARG …'",
             "Runs it with these arguments behind its own; may be repeated");
  group.count("--repeats", request->repeats, "N", "How often each runs, in turns with the others");
  group.option("--patience", request->patience_s, "SECONDS", "After which a run has failed");
  console::OptionGroup place(*command, "Where");
  place.count("--hosts", request->testbed.hosts, "N", "Number of nodes");
  CLI::Option& bandwidth =
      place.option("--bandwidth", request->testbed.bandwidth, "RATE", "Of each host, up and down");
  bandwidth.check(bench::readable_by(study::parse_bandwidth));
  CLI::Option& latency = place.option("--latency", request->testbed.latency, "TIME",
                                      "One way; a round trip takes twice that");
  latency.check(bench::readable_by(study::parse_duration));
  constexpr double kMostLoss = 0.9;
  CLI::Option& loss = place.option("--loss", request->testbed.loss, "SHARE",
                                   "Of the packets each way that are lost, 0.01 for 1 %");
  loss.check(CLI::Range(0.0, kMostLoss));
  place
      .flag("--loopback", request->testbed.loopback,
            "On this machine's loopback as it is, without these three; needs no root")
      .excludes(&bandwidth, &latency, &loss);
  console::add_common_options(*command, request->common);
  command->remove_option(command->get_option("--config"));
  command->footer(kLaunchExamples);
  return {command, [request] { return run(*request); }};
}

}  // namespace sotto::netlab

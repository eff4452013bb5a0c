#include "contest.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/console/option_group.h>
#include <sotto/console/signals.h>
#include <sotto/study/units.h>

#include "bench/support/command_line.h"

namespace sotto::netlab {
namespace {

/// Refuses what is wrong with all of them before there is a network.
Runners runners_of(const ContestRequest& request, const std::vector<Contender>& contenders) {
  if (request.repeats < 1) {
    refuse("--repeats", "0", "at least one is needed");
  }
  if (std::ranges::find(contenders, Runner::sotto, &Contender::runner) != contenders.end()) {
    request.options.check_program();
  }
  return {.sotto = request.options.program, .python = request.python};
}

}  // namespace

void add_contest_options(CLI::App& command, ContestRequest& request, const std::string& rivals) {
  console::OptionGroup group(command, "Where, and who");
  group.count("--hosts", request.testbed.hosts, "N", "Number of nodes");
  CLI::Option& bandwidth =
      group.option("--bandwidth", request.testbed.bandwidth, "RATE", "Of each host, up and down");
  bandwidth.check(bench::readable_by(study::parse_bandwidth));
  CLI::Option& latency = group.option("--latency", request.testbed.latency, "TIME",
                                      "One way; a round trip takes twice that");
  latency.check(bench::readable_by(study::parse_duration));
  group
      .flag("--loopback", request.testbed.loopback,
            "On this machine's loopback as it is, without these two; needs no root")
      .excludes(&bandwidth, &latency);
  group.list("--only", request.only, "NAME",
             "Only contenders of this name, or whose name contains it; may be repeated: " + rivals);
  group.option("--python", request.python, "PATH", "The Python that has PyTorch");
  group.count("--repeats", request.repeats, "N", "How often each runs, in turns with the others");
  group.option("--patience", request.patience_s, "SECONDS", "After which a run has failed");
  add_command_options(command, request.options);
  command.remove_option(command.get_option("--transport"));
}

Contest::Contest(const ContestRequest& request, std::vector<Contender> contenders)
    : request_(request),
      contenders_(std::move(contenders)),
      runners_(runners_of(request, contenders_)),
      testbed_(request.testbed) {}

void Contest::say(const std::string& what) const {
  if (!request_.options.common.quiet) {
    fmt::print(stderr, "netlab: {}\n", what);
  }
}

Json Contest::links() const {
  Json all = Json::array();
  for (const LinkCheck& check : testbed_.check()) {
    if (!check.good()) {
      say("warning: the emulated link is off: " + check.wrong);
    }
    all.push_back({{"round_trip_s", check.round_trip_s},
                   {"bytes_per_s", check.bytes_per_s},
                   {"expected_round_trip_s", check.expected_round_trip_s},
                   {"expected_bytes_per_s", check.expected_bytes_per_s},
                   {"good", check.good()}});
  }
  return all;
}

std::vector<ContenderResult> Contest::blank_results() const {
  std::map<Runner, std::optional<std::string>> looked;
  std::vector<ContenderResult> results;
  results.reserve(contenders_.size());
  for (const Contender& contender : contenders_) {
    if (!looked.contains(contender.runner)) {
      looked[contender.runner] = runners_.missing(contender.runner);
    }
    const auto& missing = looked[contender.runner];
    results.push_back({.contender = contender,
                       .seconds = {},
                       .bytes = {},
                       .wire = {},
                       .participation = missing ? Participation::skipped : Participation::runs,
                       .why = missing.value_or("")});
  }
  return results;
}

void Contest::repetition(std::vector<ContenderResult>& results, const Ask& ask, const Take& take,
                         const std::string& title) const {
  for (ContenderResult& one : results) {
    if (console::stop_requested()) {
      return;
    }
    if (one.participation != Participation::runs) {
      continue;
    }
    const std::string folder = folder_.path() + "/job";
    std::filesystem::create_directory(folder);
    const auto end = run_job(
        testbed_, processes_of(one.contender, ask(one.contender), testbed_, runners_, folder),
        request_.patience_s, console::stop_requested());
    std::filesystem::remove_all(folder);
    if (console::stop_requested()) {
      return;
    }
    const auto seconds = end.ok() ? take(one, *end) : Result<std::optional<double>>(end.status());
    if (!seconds.ok()) {
      one.participation = Participation::failed;
      one.why = seconds.status().message();
    }
    one.seconds.push_back(seconds.ok() ? *seconds : std::nullopt);
    say(fmt::format("{}: {}: {}", title, one.contender.name,
                    !seconds.ok() ? "failed: " + one.why
                    : *seconds    ? study::duration_text(**seconds)
                                  : "not reached"));
  }
}

}  // namespace sotto::netlab

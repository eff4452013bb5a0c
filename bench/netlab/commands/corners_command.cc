// `netlab corners`: the time of an epoch against bandwidth and against latency, at both ends of the
// other, for the methods between which such links decide (Tang et al. 2018, arXiv:1803.06443;
// arXiv:1907.07346): by the simulator as lines, by the real program as dots.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/study/units.h>

#include "bench/netlab/command_options.h"
#include "bench/netlab/prediction/calibration.h"
#include "bench/support/statistics.h"
#include "commands.h"
#include "corners_page.h"
#include "corners_survey.h"

namespace sotto::netlab {
namespace {

constexpr const char* kCornersExamples =
    "Examples:\n"
    "  netlab corners --page corners.html --json corners.json\n"
    "  netlab corners --transport zmq --page corners.html\n"
    "Eight nodes, each with a connection of its own, and a model of 1.09 MB. An epoch is 100 "
    "rounds: 25,600 examples in batches of 32. About 25 minutes a transport.";

void show(const corners::Survey& survey, const console::Output& output) {
  output.line(fmt::format("\nan epoch of {:g} rounds over {}: predicted / measured",
                          corners::kEpochRounds, survey.transport()));
  std::vector<std::string> titles = {"link"};
  std::ranges::transform(corners::kMethods, std::back_inserter(titles), &corners::Method::name);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [place, times] : survey.field()) {
    if (times.front().repeats.empty()) {
      continue;
    }
    std::vector<std::string> row = {place.name()};
    for (const corners::Times& one : times) {
      const auto measured = one.measured();
      row.push_back(measured ? fmt::format("{} / {}", study::duration_text(one.predicted),
                                           study::duration_text(*measured))
                             : "–");
    }
    rows.push_back(row);
  }
  output.table(titles, rows);
  output.line(fmt::format("largest error of a prediction: {:.1f} %", 100 * survey.worst()));
}

Json json_of(const corners::Survey& survey) {
  Json rows = Json::array();
  for (const auto& [place, times] : survey.field()) {
    for (std::size_t method = 0; method < corners::kMethods.size(); ++method) {
      const corners::Times& one = times[method];
      rows.push_back(
          {{"mbit_per_s", place.mbit_per_s},
           {"latency_ms", place.latency_ms},
           {"method", corners::kMethods[method].name},
           {"run", corners::kMethods[method].words},
           {"predicted_epoch_s", one.predicted},
           {"measured_epoch_s",
            one.repeats.empty() ? Json() : bench::spread_json(bench::spread_of(one.repeats))},
           {"measured_rounds", one.repeats.empty() ? Json() : Json(one.rounds)}});
    }
  }
  return {{"transport", survey.transport()}, {"times", rows}, {"worst_error", survey.worst()}};
}

struct CornersRequest {
  CommandOptions options;
  double seconds = 4;
  int repeats = 1;
  std::string page;
};

int run_corners(const CornersRequest& request) {
  const console::Output output(request.options.common);
  check_writable("--page", request.page);
  if (!(request.seconds > 0 && request.seconds <= 600)) {
    refuse("--seconds", fmt::to_string(request.seconds), "it must be above 0 and at most 600");
  }
  if (request.repeats < 1) {
    refuse("--repeats", fmt::to_string(request.repeats), "at least one is needed");
  }
  console::catch_stop_signals();
  const RealProgram program = request.options.real_program();
  const auto calibration = calibrate(request.options.transports(), program);
  if (!calibration.ok()) {
    return failed(calibration.status().message());
  }
  std::vector<corners::Survey> surveys;
  Json transports = Json::array();
  std::string fault;
  for (const std::string& transport : request.options.transports()) {
    corners::Survey& survey =
        surveys.emplace_back(transport, request.seconds, request.repeats, *calibration, program);
    if (Status status = survey.run(); !status.ok()) {
      fault = fmt::format("{}: {}", transport, status.message());
    }
    show(survey, output);
    transports.push_back(json_of(survey));
    if (!fault.empty()) {
      break;
    }
  }
  if (!request.page.empty()) {
    write_result_file("--page", request.page, corners::page_of(surveys));
  }
  output.json({{"sotto", SOTTO_VERSION},
               {"calibration", calibration_json(*calibration)},
               {"epoch_rounds", corners::kEpochRounds},
               {"transports", transports},
               {"fault", fault.empty() ? Json() : Json(fault)}});
  return fault.empty() ? console::kDone : failed(fault);
}

}  // namespace

console::Command add_corners_command(CLI::App& netlab, const std::string& program) {
  auto request = std::make_shared<CornersRequest>();
  request->options.program = program;
  CLI::App* command = netlab.add_subcommand(
      "corners", "Time of an epoch against bandwidth and latency: predicted and measured");
  add_command_options(*command, request->options);
  console::OptionGroup group(*command, "What is measured, and what comes out");
  group.option("--seconds", request->seconds, "S",
               "Rounds of a measured run: as many as are predicted to take so long, 6 to 100");
  group.count("--repeats", request->repeats, "N", "Measured runs of each; medians are shown");
  group.option("--page", request->page, "FILE.html", "Draw the four plots as a page");
  command->footer(kCornersExamples);
  return {command, [request] { return run_corners(*request); }};
}

}  // namespace sotto::netlab

// `netlab corners`: the time of an epoch against bandwidth and against latency, at both ends of the
// other, for the methods between which such links decide (Tang et al. 2018, arXiv:1803.06443;
// arXiv:1907.07346): by the simulator as lines, by the real program as dots.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/console/page.h>
#include <sotto/console/plot.h>
#include <sotto/console/signals.h>
#include <sotto/study/units.h>
#include <sotto/trainers/files/result_file.h>

#include "calibration.h"
#include "lab_commands.h"
#include "predicted_run.h"
#include "scenario_text.h"
#include "statistics.h"

namespace sotto::netlab {
namespace {

constexpr const char* kCornersExamples =
    "Examples:\n"
    "  netlab corners --page corners.html --json corners.json\n"
    "  netlab corners --transport zmq --page corners.html\n"
    "Eight nodes, each with a connection of its own, and a model of 1.09 MB. An epoch is 100 "
    "rounds: 25,600 examples in batches of 32. About 25 minutes a transport.";

constexpr int kCornersNodes = 8;
constexpr const char* kCornersModel = "mlp:343";  // 272,695 parameters
constexpr double kEpochRounds = 100;
/// Rounds of the first of two real runs. The second is as much longer as all further rounds
/// are: the first rounds have connections to open, receives to tell of, and Adam's variance to
/// gather.
constexpr double kFirstRounds = 3;
constexpr double kFewestMore = 3;
/// Rounds of the first of two simulated runs.
constexpr std::uint64_t kSimulatedRounds = 6;

struct Method {
  const char* name;
  const char* words;
};
constexpr std::array kMethods = {
    Method{"all-reduce, 32 bit", "allreduce"},
    // Rounding without error feedback: what it costs in accuracy is not asked here.
    Method{"all-reduce, 8 bit", "allreduce quant:8 allow-contract-violation=true"},
    Method{"D-PSGD, 32 bit", "dpsgd ring"}, Method{"DCD-PSGD, 8 bit", "dcd quant:8 ring"},
    Method{"DeepSqueeze, 8 bit", "deepsqueeze quant:8 ring"},
    Method{"1-bit Adam", "onebit-adam sign freeze-step=1"}};

struct Place {
  double mbit_per_s = 0;
  double latency_ms = 0;

  auto operator<=>(const Place&) const = default;
  std::string name() const { return fmt::format("{:g} Mbit/s, {:g} ms", mbit_per_s, latency_ms); }
};

// The simulator's points; the program runs at those in the second lists.
constexpr std::array<double, 8> kBandwidths = {5, 10, 25, 50, 100, 250, 500, 1000};
constexpr std::array<double, 4> kMeasuredBandwidths = {5, 25, 100, 1000};
constexpr std::array<double, 7> kLatencies = {0.1, 0.5, 1, 5, 10, 25, 50};
constexpr std::array<double, 4> kMeasuredLatencies = {0.1, 1, 10, 50};

/// One of the four plots: a line of places, of which some are measured.
struct Edge {
  std::string title;
  bool over_latency = false;
  double fixed = 0;  ///< the other of the two

  Place at(double value) const { return over_latency ? Place{fixed, value} : Place{value, fixed}; }
  std::vector<double> values() const {
    return over_latency ? std::vector<double>(kLatencies.begin(), kLatencies.end())
                        : std::vector<double>(kBandwidths.begin(), kBandwidths.end());
  }
  bool measured(double value) const {
    const auto has = [value](const auto& list) {
      return std::ranges::find(list, value) != list.end();
    };
    return over_latency ? has(kMeasuredLatencies) : has(kMeasuredBandwidths);
  }
};

const std::array<Edge, 4>& edges() {
  static const std::array<Edge, 4> kEdges = {
      Edge{"at 0.1 ms, low latency", false, 0.1}, Edge{"at 50 ms, high latency", false, 50},
      Edge{"at 1 Gbit/s, high bandwidth", true, 1000}, Edge{"at 5 Mbit/s, low bandwidth", true, 5}};
  return kEdges;
}

/// Times of an epoch, in seconds.
struct Times {
  double predicted = 0;         ///< 0: not simulated
  std::vector<double> repeats;  ///< measured; empty: not there
  double rounds = 0;            ///< of the longest run of each

  std::optional<double> measured() const {
    return repeats.empty() ? std::nullopt : std::optional(quantile(repeats, 0.5));
  }
};
/// By place, then by method.
using Field = std::map<Place, std::array<Times, kMethods.size()>>;

MadeScenario made_at(const Place& place, std::size_t method, std::uint64_t rounds) {
  return {.title = place.name(),
          .words = kMethods[method].words,
          .nodes = kCornersNodes,
          .mbit_per_s = place.mbit_per_s,
          .latency_ms = place.latency_ms,
          .gradient = "1 ms",
          .model = kCornersModel,
          .batch = 32,
          .rounds = rounds};
}

class Survey {
 public:
  /// Each run is measured `repeats` times.
  Survey(std::string transport, double seconds, int repeats, const Calibration& calibration,
         const Laboratory& laboratory)
      : transport_(std::move(transport)),
        seconds_(seconds),
        repeats_(repeats),
        calibration_(calibration),
        laboratory_(laboratory) {}

  /// A fault names the place where it stopped; what was found until then is shown.
  Status run() {
    for (const Edge& edge : edges()) {
      for (const double value : edge.values()) {
        for (std::size_t method = 0; method < kMethods.size(); ++method) {
          if (Status status = look(edge.at(value), method, edge.measured(value)); !status) {
            return status.with_context(
                fmt::format("{}, {}", edge.at(value).name(), kMethods[method].name));
          }
        }
      }
    }
    return {};
  }

  const std::string& transport() const { return transport_; }
  const Field& field() const { return field_; }
  /// The largest error of a prediction.
  double worst() const {
    double worst = 0;
    for (const auto& [place, times] : field_) {
      for (const Times& one : times) {
        const auto measured = one.measured();
        worst = measured ? std::max(worst, std::abs(one.predicted / *measured - 1)) : worst;
      }
    }
    return worst;
  }

 private:
  Status look(const Place& place, std::size_t method, bool measured) {
    Times& times = field_[place][method];
    if (*laboratory_.stop) {
      return {Fault::unexpected, "interrupted"};
    }
    if (times.predicted == 0) {
      const auto few = predict(place, method, kSimulatedRounds);
      const auto twice = predict(place, method, 2 * kSimulatedRounds);
      if (!few.ok() || !twice.ok()) {
        return few.ok() ? twice.status() : few.status();
      }
      const double round = (*twice - *few) / kSimulatedRounds;
      times.predicted = *few + (kEpochRounds - kSimulatedRounds) * round;
    }
    return measured && times.repeats.empty() ? measure(place, method, times) : Status();
  }

  /// Seconds that so many rounds take.
  Result<double> predict(const Place& place, std::size_t method, std::uint64_t rounds) const {
    const MadeScenario made = made_at(place, method, rounds);
    const auto run =
        predicted_run(calibrated(scenario_from(made.text()), calibration_, transport_), made.words);
    return run.ok() ? Result<double>(run->virtual_s) : run.status();
  }

  /// Runs the epoch, or where that takes longer than `seconds`, so much of it. The prediction has
  /// no other part in it.
  Status measure(const Place& place, std::size_t method, Times& times) {
    const double rounds =
        std::max(std::floor(seconds_ * kEpochRounds / times.predicted), kFirstRounds + kFewestMore);
    times.rounds = std::min(rounds, kEpochRounds);
    for (int repeat = 0; repeat < repeats_; ++repeat) {
      const auto some = run_program_for(place, method, times.rounds);
      if (!some.ok()) {
        return some.status();
      }
      double epoch = *some;
      if (times.rounds < kEpochRounds) {
        const auto first = run_program_for(place, method, kFirstRounds);
        if (!first.ok()) {
          return first.status();
        }
        epoch += (kEpochRounds - times.rounds) * (*some - *first) / (times.rounds - kFirstRounds);
      }
      times.repeats.push_back(epoch);
    }
    return {};
  }

  /// Seconds that so many rounds take.
  Result<double> run_program_for(const Place& place, std::size_t method, double rounds) const {
    const MadeScenario made = made_at(place, method, static_cast<std::uint64_t>(rounds));
    const Comparison found =
        compare(calibrated(scenario_from(made.text()), calibration_, transport_), made.words,
                transport_, laboratory_);
    return found.ok() ? Result<double>(found.measured_s)
                      : Result<double>(Status(Fault::unexpected, found.failure));
  }

  std::string transport_;
  double seconds_;
  int repeats_;
  const Calibration& calibration_;
  const Laboratory& laboratory_;
  Field field_;
};

void show(const Survey& survey, const console::Output& output) {
  output.line(fmt::format("\nan epoch of {:g} rounds over {}: predicted / measured", kEpochRounds,
                          survey.transport()));
  std::vector<std::string> titles = {"link"};
  std::ranges::transform(kMethods, std::back_inserter(titles), &Method::name);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [place, times] : survey.field()) {
    if (times.front().repeats.empty()) {
      continue;
    }
    std::vector<std::string> row = {place.name()};
    for (const Times& one : times) {
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

std::string draw(const Survey& survey, const Edge& edge) {
  std::vector<console::Curve> curves;
  for (std::size_t method = 0; method < kMethods.size(); ++method) {
    console::Curve& curve = curves.emplace_back(console::Curve{kMethods[method].name, {}, {}});
    curve.dots.emplace();
    for (const double value : edge.values()) {
      const auto found = survey.field().find(edge.at(value));
      if (found == survey.field().end() || found->second[method].predicted == 0) {
        continue;  // the survey ended before
      }
      const Times& times = found->second[method];
      curve.x.push_back(value);
      curve.y.push_back(times.predicted);
      if (const auto measured = times.measured()) {
        curve.dots->push_back({value, *measured});
      }
    }
  }
  return console::draw_plot(curves,
                            {.title = edge.title,
                             .x_label = edge.over_latency ? "latency, ms" : "bandwidth, Mbit/s",
                             .y_label = "seconds an epoch",
                             .log_x = true,
                             .log_y = true});
}

std::string page_of(const std::vector<Survey>& surveys) {
  std::string html = console::open_page("Time of an epoch on fast and slow links");
  html += fmt::format(
      "<p class=\"sub\">{} nodes, a model of 1.09 MB, {:g} rounds an epoch. Lines: the simulator. "
      "Dots: the real program on the emulated network; where an epoch is long, some rounds stand "
      "for those that follow.</p>\n<p>",
      kCornersNodes, kEpochRounds);
  for (std::size_t method = 0; method < kMethods.size(); ++method) {
    html +=
        fmt::format("{} {}&emsp;", console::curve_key(method), markup_text(kMethods[method].name));
  }
  html += "</p>\n";
  for (const Survey& survey : surveys) {
    html +=
        fmt::format("<h2>over {}</h2>\n<div class=\"plots\">\n", markup_text(survey.transport()));
    for (const Edge& edge : edges()) {
      html += draw(survey, edge);
    }
    html += "</div>\n";
  }
  return html + console::close_page();
}

Json json_of(const Survey& survey) {
  Json rows = Json::array();
  for (const auto& [place, times] : survey.field()) {
    for (std::size_t method = 0; method < kMethods.size(); ++method) {
      const Times& one = times[method];
      rows.push_back(
          {{"mbit_per_s", place.mbit_per_s},
           {"latency_ms", place.latency_ms},
           {"method", kMethods[method].name},
           {"run", kMethods[method].words},
           {"predicted_epoch_s", one.predicted},
           {"measured_epoch_s", one.repeats.empty() ? Json() : spread_json(spread_of(one.repeats))},
           {"measured_rounds", one.repeats.empty() ? Json() : Json(one.rounds)}});
    }
  }
  return {{"transport", survey.transport()}, {"times", rows}, {"worst_error", survey.worst()}};
}

struct CornersRequest {
  LabRequest lab;
  double seconds = 4;
  int repeats = 1;
  std::string page;
};

int run_corners(const CornersRequest& request) {
  const console::Output output(request.lab.common);
  check_writable("--page", request.page);
  if (!(request.seconds > 0 && request.seconds <= 600)) {
    refuse("--seconds", fmt::to_string(request.seconds), "it must be above 0 and at most 600");
  }
  if (request.repeats < 1) {
    refuse("--repeats", fmt::to_string(request.repeats), "at least one is needed");
  }
  console::catch_stop_signals();
  const Laboratory laboratory = request.lab.laboratory();
  const auto calibration = calibrate(request.lab.transports(), laboratory);
  if (!calibration.ok()) {
    return failed(calibration.status().message());
  }
  std::vector<Survey> surveys;
  Json transports = Json::array();
  std::string fault;
  for (const std::string& transport : request.lab.transports()) {
    Survey& survey =
        surveys.emplace_back(transport, request.seconds, request.repeats, *calibration, laboratory);
    if (Status status = survey.run(); !status) {
      fault = fmt::format("{}: {}", transport, status.message());
    }
    show(survey, output);
    transports.push_back(json_of(survey));
    if (!fault.empty()) {
      break;
    }
  }
  if (!request.page.empty()) {
    write_result_file("--page", request.page, page_of(surveys));
  }
  output.json({{"sotto", SOTTO_VERSION},
               {"calibration", calibration_json(*calibration)},
               {"epoch_rounds", kEpochRounds},
               {"transports", transports},
               {"fault", fault.empty() ? Json() : Json(fault)}});
  return fault.empty() ? console::kDone : failed(fault);
}

}  // namespace

console::Command add_corners_command(CLI::App& netlab, const std::string& program) {
  auto request = std::make_shared<CornersRequest>();
  request->lab.program = program;
  CLI::App* command = netlab.add_subcommand(
      "corners", "Time of an epoch against bandwidth and latency: predicted and measured");
  add_lab_options(*command, request->lab);
  console::OptionGroup group(*command, "What is measured, and what comes out");
  group.option("--seconds", request->seconds, "S",
               "Rounds of a measured run: as many as are predicted to take so long, 6 to 100");
  group.count("--repeats", request->repeats, "N", "Measured runs of each; medians are shown");
  group.option("--page", request->page, "FILE.html", "Draw the four plots as a page");
  command->footer(kCornersExamples);
  return {command, [request] { return run_corners(*request); }};
}

}  // namespace sotto::netlab

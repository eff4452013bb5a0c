// Bytes and time of a round against the number of nodes: flat where a node talks to as many
// neighbours however many nodes there are, and growing where a sum goes round all of them.
//   build/bench/scaling [--nodes 4,8,16,32,64] [--real gloo] [--json FILE] [--plot FILE.svg]
// Time is the simulator's, on hosts with a connection of --bandwidth and a latency of --latency one
// way. With --real the same runs are also done by that many processes over loopback: their bytes
// must be the simulator's, byte for byte. Their time is not shown: they share this machine's cores.
#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include <sotto/base/json_text.h>
#include <sotto/base/result_file.h>
#include <sotto/console/child.h>
#include <sotto/console/output.h>
#include <sotto/console/plot.h>
#include <sotto/study/compute_spec.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/simulation/simulated_run.h>
#include <sotto/study/train/run_spec.h>
#include <sotto/study/units.h>
#include <sotto/trainers/launch/private_directory.h>

#include "bench/support/command_line.h"
#include "bench/support/plot_row.h"
#include "bench/support/train_words.h"

namespace {

using namespace sotto;

struct Study {
  console::CommonOptions common;
  std::vector<int> nodes = {4, 8, 16, 32, 64};
  std::vector<std::string> runs = {"allreduce", "dpsgd ring", "dcd quant:8 ring",
                                   "dpsgd one-peer-exponential",
                                   "deepsqueeze sign one-peer-exponential"};
  std::string model = "mlp:64";
  std::string bandwidth = "100 Mbit/s";
  std::string latency = "10 ms";
  std::string gradient = "10 ms";
  int rounds = 24;
  std::string real;
  std::string plot;
};

/// A round of one run at one number of nodes.
struct Point {
  int nodes = 0;
  double bytes = 0;  ///< the mean that a node sends
  double seconds = 0;
  std::string real;  ///< "" where no processes ran, else whether their bytes are these
};

double mean_bytes(const Json& result) {
  const auto& bytes = result.at("bytes_sent_per_node");
  double sum = 0;
  for (const Json& each : bytes) {
    sum += each.get<double>();
  }
  return sum / static_cast<double>(bytes.size());
}

study::Scenario scenario_of(const Study& settings, int nodes, const std::string& folder) {
  const std::string path = fmt::format("{}/{}.toml", folder, nodes);
  std::ofstream(path) << fmt::format(
      "sotto-scenario = 1\ntitle = \"scaling\"\nseed = {}\ntiming-only = true\nrun = [\"{}\"]\n"
      "[nodes]\ncount = {}\ngradient = \"{}\"\n"
      "[network]\nlink = {{ latency = \"{}\" }}\n"
      "hosts = [{{ nodes = \"all\", up = \"{}\", down = \"{}\" }}]\n"
      "[task]\ntask = \"digits\"\nmodel = \"{}\"\nrounds = {}\n",
      settings.common.seed, fmt::join(settings.runs, "\", \""), nodes, settings.gradient,
      settings.latency, settings.bandwidth, settings.bandwidth, settings.model, settings.rounds);
  return study::read_scenario(path);
}

Point simulate(const study::Scenario& scenario, const std::string& words, double rounds) {
  const auto result = study::simulate_run(scenario, study::parse_run(words)).result;
  return {scenario.nodes, result.bytes_per_node() / rounds, result.virtual_s / rounds, ""};
}

/// Bytes of a round of the same run by as many processes.
double real_bytes(const Study& settings, int nodes, const std::string& words) {
  std::vector<std::string> command = {SOTTO_PROGRAM, "train", "--json", "-", "--local"};
  const auto given = bench::train_words(words, {{"nodes", fmt::format("{}", nodes)},
                                                {"rounds", fmt::format("{}", settings.rounds)},
                                                {"seed", fmt::format("{}", settings.common.seed)},
                                                {"model", settings.model},
                                                {"transport", settings.real}});
  command.insert(command.end(), given.begin(), given.end());
  console::Child child(command);
  if (child.wait() != 0) {
    throw std::runtime_error(fmt::format("{}: {}", words, child.errors()));
  }
  constexpr std::size_t kDepth = 20;
  return mean_bytes(parse_json<Json>(child.output(), kDepth)) / settings.rounds;
}

using Curves = std::map<std::string, std::vector<Point>>;

Curves measure(const Study& settings) {
  const PrivateDirectory folder;
  Curves curves;
  for (const int nodes : settings.nodes) {
    for (const std::string& words : settings.runs) {
      Point point;
      point.nodes = nodes;
      if (!settings.real.empty()) {
        point.bytes = real_bytes(settings, nodes, words);
      }
      curves[words].push_back(point);
    }
  }
  for (std::size_t k = 0; k < settings.nodes.size(); ++k) {
    const auto scenario = scenario_of(settings, settings.nodes[k], folder.path());
    for (const std::string& words : settings.runs) {
      Point& point = curves.at(words)[k];
      const double real = point.bytes;
      point = simulate(scenario, words, settings.rounds);
      if (!settings.real.empty()) {
        point.real = real == point.bytes ? "equal" : fmt::format("{:.0f}", real);
      }
    }
  }
  return curves;
}

/// How much the largest number of nodes costs beside the smallest.
double growth(const std::vector<Point>& points, double Point::*what) {
  return points.back().*what / points.front().*what;
}

void show(const Study& settings, const Curves& curves, const console::Output& output) {
  std::vector<std::vector<std::string>> rows;
  Json results = Json::array();
  for (const std::string& words : settings.runs) {
    const auto& points = curves.at(words);
    Json list = Json::array();
    for (const Point& point : points) {
      rows.push_back({words, fmt::to_string(point.nodes), fmt::format("{:.0f}", point.bytes),
                      fmt::format("{:.4f} s", point.seconds),
                      fmt::format("{:.3f}", point.seconds / points.front().seconds), point.real});
      list.push_back({{"nodes", point.nodes},
                      {"bytes_per_node_and_round", point.bytes},
                      {"seconds_per_round", point.seconds},
                      {"bytes_of_processes", point.real}});
    }
    results.push_back({{"run", words},
                       {"points", list},
                       {"bytes_growth", growth(points, &Point::bytes)},
                       {"time_growth", growth(points, &Point::seconds)}});
  }
  output.table({"run", "nodes", "bytes a node", "a round",
                fmt::format("of {} nodes", settings.nodes.front()), "processes"},
               rows);
  output.json({{"bandwidth", settings.bandwidth},
               {"latency", settings.latency},
               {"gradient", settings.gradient},
               {"rounds", settings.rounds},
               {"runs", results}});
}

std::string draw(const Study& settings, const Curves& curves, double Point::*what,
                 const console::PlotOptions& options) {
  std::vector<console::Curve> lines;
  lines.reserve(settings.runs.size());
  for (const std::string& words : settings.runs) {
    console::Curve line{.name = words, .x = {}, .y = {}};
    for (const Point& point : curves.at(words)) {
      line.x.push_back(point.nodes);
      line.y.push_back(point.*what);
    }
    lines.push_back(std::move(line));
  }
  return console::draw_plot(lines, options);
}

/// Both plots side by side above their key.
std::string picture(const Study& settings, const Curves& curves) {
  console::PlotOptions options{.title = "Time of a round",
                               .x_label = "nodes",
                               .y_label = "seconds",
                               .log_x = true,
                               .log_y = true};
  const std::string times = draw(settings, curves, &Point::seconds, options);
  options.title = "Bytes that a node sends in a round";
  options.y_label = "bytes";
  return bench::plot_row({times, draw(settings, curves, &Point::bytes, options)}, settings.runs);
}

void run(const Study& settings) {
  const console::Output output(settings.common);
  check_writable("--plot", settings.plot);
  const Curves curves = measure(settings);
  show(settings, curves, output);
  if (!settings.plot.empty()) {
    write_result_file("--plot", settings.plot, picture(settings, curves));
  }
}

void add_options(CLI::App& app, Study& settings) {
  console::add_common_options(app, settings.common);
  app.remove_option(app.get_option("--config"));
  app.option_defaults()->always_capture_default();
  app.add_option("--nodes", settings.nodes, "Numbers of nodes")->delimiter(',');
  app.add_option("--run", settings.runs, "Runs, each in the words of `sotto compare --run`");
  app.add_option("--model", settings.model, "The model, of the task digits");
  app.add_option("--bandwidth", settings.bandwidth, "Of each host's connection, each way")
      ->check(bench::readable_by(study::parse_bandwidth));
  app.add_option("--latency", settings.latency, "One way")
      ->check(bench::readable_by(study::parse_duration));
  app.add_option("--gradient", settings.gradient, "Time of a gradient")
      ->check(bench::readable_by(study::parse_compute_time));
  app.add_option("--rounds", settings.rounds, "Of each run")->check(CLI::Range(1, 100'000));
  app.add_option("--real", settings.real, "Also run processes over this transport: gloo, zmq");
  app.add_option("--plot", settings.plot, "Draw both into this SVG file");
}

}  // namespace

int main(int argc, char** argv) {
  Study settings;
  CLI::App app("Bytes and time of a round against the number of nodes", "scaling");
  add_options(app, settings);
  return bench::run_main(app, argc, argv, [&] {
    run(settings);
    return console::kDone;
  });
}

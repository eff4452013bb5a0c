// How long N local nodes take to meet, what connections they hold, and what memory a parameter
// costs each: the real `sotto train`, seen from outside, beside Gloo's own full mesh.
//   build/bench/startup [--nodes 8,16,32,64] [--repeats R] [--json FILE]
// "ready" is from the start of the program until the first round's models have been averaged, which
// needs every node; Gloo's is from the first fork until all have passed a barrier, with no program
// start, data or training. The runs take turns; times are medians, and the ratio is theirs.
// Memory is the slope between two sizes of one model, in floats a parameter, beside what
// AlgorithmInfo states with the model, the gradient and the frames.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/comm/transport.h>
#include <sotto/console/output.h>
#include <sotto/optim/registry.h>
#include <sotto/topology/registry.h>

#include "bench/support/command_line.h"
#include "bench/support/quantile.h"
#include "bench/support/running_job.h"
#include "gloo_mesh.h"

namespace {

using namespace sotto;
using bench::median;
using bench::RunningJob;

/// Fails a job that hangs; no measure of anything.
constexpr std::chrono::seconds kPatience{300};
/// A job that trains until it is ended.
constexpr const char* kEndless = "1000000000";

struct Study {
  console::CommonOptions common;
  std::vector<int> nodes = {8, 16, 32, 64};
  std::vector<std::string> transports = {"gloo", "zmq"};
  std::vector<std::string> topologies = {"ring", "one-peer-exponential"};
  std::vector<std::string> algorithms = {"dpsgd", "dcd", "deepsqueeze", "choco"};
  int repeats = 3;
  int memory_nodes = 4;
};

/// Neighbours of a node in the ring.
constexpr int kDegree = 2;

/// Refuses what no job could be started with, before one is.
void check_names(const Study& settings) {
  for (const std::string& transport : settings.transports) {
    (void)transport_info(transport);
  }
  for (const std::string& algorithm : settings.algorithms) {
    (void)algorithm_info(algorithm);
  }
  for (const std::string& topology : settings.topologies) {
    for (const int nodes : settings.nodes) {
      (void)make_topology(topology, nodes);
    }
  }
}

std::vector<std::string> words_of(const std::string& transport, const std::string& topology,
                                  int nodes) {
  return {SOTTO_PROGRAM,        "train",   "--local",    "--task", "digits",
          "--transport",        transport, "--topology", topology, "--nodes",
          fmt::to_string(nodes)};
}

/// Whom a node speaks to or hears in any round of a period; the most of all nodes.
int most_neighbours(const std::string& topology, int nodes) {
  const auto graph = make_topology(topology, nodes);
  std::size_t most = 0;
  for (Rank rank = 0; rank < nodes; ++rank) {
    std::vector<Rank> peers;
    for (Round round = 0; round < graph->period(); ++round) {
      for (const auto& edges : {graph->in_edges(rank, round), graph->out_edges(rank, round)}) {
        for (const Edge& edge : edges) {
          peers.push_back(edge.peer);
        }
      }
    }
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    most = std::max(most, peers.size());
  }
  return static_cast<int>(most);
}

/// What one kind of job showed.
struct Started {
  std::string transport;
  std::string topology;
  std::vector<double> seconds;
  int most_connections = 0;
};

void start_once(Started& kind, int nodes) {
  auto words = words_of(kind.transport, kind.topology, nodes);
  for (const char* word : {"--algorithm", "dpsgd", "--rounds", kEndless, "--eval-every", "1"}) {
    words.emplace_back(word);
  }
  RunningJob job(words);
  kind.seconds.push_back(job.wait_for_lines(2, Deadline::after(kPatience)));  // titles, round 1
  const auto processes = job.nodes();
  if (processes.size() != static_cast<std::size_t>(nodes)) {
    throw std::runtime_error(fmt::format("{} of {} nodes run", processes.size(), nodes));
  }
  for (const pid_t process : processes) {
    kind.most_connections = std::max(kind.most_connections, bench::connections_of(process));
  }
}

Json measure_start(const Study& settings, int nodes, std::vector<std::vector<std::string>>& rows) {
  std::vector<Started> kinds;
  for (const std::string& transport : settings.transports) {
    for (const std::string& topology : settings.topologies) {
      kinds.push_back({transport, topology, {}, 0});
    }
  }
  std::vector<double> gloo;
  for (int repeat = 0; repeat < settings.repeats; ++repeat) {
    gloo.push_back(bench::connect_gloo_mesh(nodes));
    for (Started& kind : kinds) {
      start_once(kind, nodes);
    }
  }
  Json results = Json::array();
  for (const Started& kind : kinds) {
    const int neighbours = most_neighbours(kind.topology, nodes);
    const double ratio = median(kind.seconds) / median(gloo);
    results.push_back(
        {{"nodes", nodes},
         {"transport", kind.transport},
         {"topology", kind.topology},
         {"ready_s", kind.seconds},
         {"gloo_full_mesh_s", gloo},
         {"ratio", ratio},
         {"neighbours", neighbours},
         {"most_connections", kind.most_connections},
         {"connections_per_neighbour", static_cast<double>(kind.most_connections) / neighbours}});
    rows.push_back({fmt::to_string(nodes), kind.transport, kind.topology,
                    fmt::format("{:.2f} s", median(kind.seconds)),
                    fmt::format("{:.2f} s", median(gloo)), fmt::format("{:.2f}", ratio),
                    fmt::to_string(neighbours), fmt::to_string(kind.most_connections),
                    fmt::to_string(nodes - 1)});
  }
  return results;
}

/// Private bytes of a node of a job with this hidden layer: of each process the least that was
/// seen, as evaluations come and go; of those the median.
double private_bytes(const Study& settings, const std::string& algorithm,
                     const std::string& transport, int hidden) {
  auto words = words_of(transport, "ring", settings.memory_nodes);
  for (const std::string& word : {std::string("--algorithm"), algorithm, std::string("--model"),
                                  fmt::format("mlp:{}", hidden), std::string("--batch"),
                                  std::string("1"), std::string("--rounds"), std::string(kEndless),
                                  std::string("--eval-every"), std::string("5"),
                                  // What is stated is that of a model in one piece.
                                  std::string("--buckets"), std::string("1")}) {
    words.push_back(word);
  }
  RunningJob job(words);
  (void)job.wait_for_lines(2, Deadline::after(kPatience));
  std::vector<double> least;
  for (const pid_t process : job.nodes()) {
    constexpr int kLooks = 20;
    double bytes = static_cast<double>(bench::private_bytes_of(process));
    for (int look = 1; look < kLooks; ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      bytes = std::min(bytes, static_cast<double>(bench::private_bytes_of(process)));
    }
    least.push_back(bytes);
  }
  return median(least);
}

/// Parameters of the multi-layer perceptron of the task digits.
double parameters_of(int hidden) { return 784.0 * hidden + hidden + 10.0 * hidden + 10; }

/// Bytes that the frames of a node of the ring have room for: one out, one in for each neighbour.
double frame_bytes(const std::string& algorithm, int nodes, int hidden) {
  constexpr double kFrames = 1 + kDegree;
  std::vector<float> model(static_cast<std::size_t>(parameters_of(hidden)));
  AlgorithmSetup setup;
  setup.nodes = nodes;
  setup.parameters = model;
  setup.topology = make_topology("ring", nodes);
  setup.step_rule = make_step_rule({});
  return kFrames *
         static_cast<double>(make_algorithm(algorithm, std::move(setup))->peers().max_frame_bytes);
}

Json measure_memory(const Study& settings, const std::string& algorithm,
                    const std::string& transport, std::vector<std::vector<std::string>>& rows) {
  constexpr int kSmall = 500;
  constexpr int kLarge = 2500;
  constexpr double kModelAndGradient = 2;
  const int nodes = settings.memory_nodes;
  const double bytes = sizeof(float) * (parameters_of(kLarge) - parameters_of(kSmall));
  const double measured = (private_bytes(settings, algorithm, transport, kLarge) -
                           private_bytes(settings, algorithm, transport, kSmall)) /
                          bytes;
  const double frames =
      (frame_bytes(algorithm, nodes, kLarge) - frame_bytes(algorithm, nodes, kSmall)) / bytes;
  const double state = state_floats(algorithm_info(algorithm).memory, nodes, kDegree, false);
  const double stated = state + kModelAndGradient + frames;
  rows.push_back({algorithm, transport, fmt::format("{:.2f}", measured),
                  fmt::format("{:.2f}", state), fmt::format("{:.2f}", frames),
                  fmt::format("{:.2f}", stated), fmt::format("{:.2f}", measured / stated)});
  return {{"algorithm", algorithm},         {"transport", transport},
          {"nodes", settings.memory_nodes}, {"floats_measured", measured},
          {"floats_of_state", state},       {"floats_of_frames", frames},
          {"floats_stated", stated},        {"ratio", measured / stated}};
}

void run(const Study& settings) {
  const console::Output output(settings.common);
  check_names(settings);
  Json result = {{"starts", Json::array()}, {"memory", Json::array()}};
  std::vector<std::vector<std::string>> rows;
  for (const int nodes : settings.nodes) {
    for (Json& one : measure_start(settings, nodes, rows)) {
      result["starts"].push_back(std::move(one));
    }
  }
  output.table({"nodes", "transport", "topology", "ready", "Gloo's mesh", "ratio", "neighbours",
                "connections", "Gloo's"},
               rows);
  rows.clear();
  for (const std::string& transport : settings.transports) {
    for (const std::string& algorithm : settings.algorithms) {
      result["memory"].push_back(measure_memory(settings, algorithm, transport, rows));
    }
  }
  output.line("");
  output.line("Floats a parameter; stated: state + model and gradient + frames");
  output.table({"algorithm", "transport", "measured", "state", "frames", "stated", "ratio"}, rows);
  output.json(result);
}

}  // namespace

int main(int argc, char** argv) {
  Study settings;
  CLI::App app("Start-up of many local nodes: time, connections, memory", "startup");
  console::add_common_options(app, settings.common);
  app.remove_option(app.get_option("--config"));
  app.option_defaults()->always_capture_default();
  app.add_option("--nodes", settings.nodes, "Numbers of nodes")->delimiter(',');
  app.add_option("--transports", settings.transports, "gloo, zmq")->delimiter(',');
  app.add_option("--topologies", settings.topologies, "Graphs")->delimiter(',');
  app.add_option("--algorithms", settings.algorithms, "Whose memory to measure")->delimiter(',');
  app.add_option("--repeats", settings.repeats, "Starts of each kind")->check(CLI::Range(1, 100));
  return bench::run_main(app, argc, argv, [&] {
    run(settings);
    return console::kDone;
  });
}

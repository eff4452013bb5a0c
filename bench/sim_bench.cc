// Messages per second of the simulator and of SimGrid, in the same run on the same exchange: a ring
// of messages on a star of hosts.
//
//   sim_bench [--seconds S] [NODES…]      prints JSON
//
// Uncontended: in each round every host sends 100 kB to the next and waits for what the one before
// sends; each crosses only its sender's way out and its receiver's way in. Contended: to both
// neighbours at once, with hosts of different speeds, so that flows share links and all hang
// together. Three engines: SimGrid with an actor for each host, sotto's network alone, and sotto's
// whole simulator with a rehearsed algorithm on each host, its trace hashed.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/sim/network/network.h>
#include <sotto/sim/rehearsal.h>
#include <sotto/sim/simulator.h>
#include <sotto/topology/registry.h>

#ifdef SOTTO_HAVE_SIMGRID
#include "simgrid_ring.h"
#endif

using namespace sotto;

namespace {

constexpr std::uint64_t kBytes = 100'000;
constexpr SimTime kLatency = 1'000'000;

double bandwidth_of(int host, bool contention) {
  return contention ? 1e7 * (1 + 0.5 * ((host * 37) % 101) / 101.0) : 1e7;
}

Platform make_platform(int nodes, bool contention) {
  Platform platform = make_star(nodes, 1e7, kLatency);
  for (Rank host = 0; contention && host < nodes; ++host) {
    platform.set_egress(host, {.bytes_per_s = bandwidth_of(host, true), .latency = kLatency / 2});
    platform.set_ingress(host, {.bytes_per_s = bandwidth_of(host, true), .latency = kLatency / 2});
  }
  return platform;
}

/// Messages delivered, and the seconds that it took, the platform's construction not counted.
struct Score {
  double messages = 0;
  double seconds = 0;
};

class Watch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Plays so many rounds.
using Game = std::function<Score(int rounds)>;

Score play_network(int nodes, bool contention, int rounds) {
  const Platform platform = make_platform(nodes, contention);
  EventQueue queue;
  Network network(platform, {}, 1, queue);
  const auto n = static_cast<ConnectionId>(nodes);
  const ConnectionId peers = contention ? 2 : 1;
  for (Rank host = 0; host < nodes; ++host) {
    network.connect(host, (host + 1) % nodes);
    if (contention) {
      network.connect(host, (host + nodes - 1) % nodes);
    }
  }
  // A host goes on when its messages of the round are delivered and its peers' are there.
  const Watch watch;
  std::vector<ConnectionId> due(n, 0);
  std::vector<int> played(n, 0);
  const auto send = [&](ConnectionId host) {
    due[host] += 2 * peers;
    for (ConnectionId k = 0; k < peers; ++k) {
      network.send(host * peers + k, kBytes);
    }
  };
  for (ConnectionId host = 0; host < n; ++host) {
    send(host);
  }
  std::uint64_t messages = 0;
  const auto count = [&](ConnectionId host) {
    if (--due[host] == 0 && ++played[host] < rounds) {
      send(host);
    }
  };
  while (const auto arrival = network.step()) {
    ++messages;
    const ConnectionId from = arrival->connection / peers;
    const bool forward = arrival->connection % peers == 0;
    count(from);
    count(forward ? (from + 1) % n : (from + n - 1) % n);
  }
  return {static_cast<double>(messages), watch.seconds()};
}

Score play_simulator(int nodes, bool contention, int rounds) {
  SimulatorOptions options;
  options.rounds = static_cast<Round>(rounds);
  RehearsalShape shape;
  shape.timing = RehearsalShape::Timing::blocking;
  shape.frame_bytes = kBytes;
  std::vector<WeightedEdge> edges;
  for (Rank host = 0; host < nodes; ++host) {
    edges.push_back({host, (host + 1) % nodes, 0.25});
    if (contention) {
      edges.push_back({host, (host + nodes - 1) % nodes, 0.25});
    }
  }
  const auto ring = std::make_shared<const Topology>(
      "ring", nodes, std::vector<std::vector<WeightedEdge>>{std::move(edges)});
  Simulator simulator(make_platform(nodes, contention), options, make_rehearsals(shape, ring));
  const Watch watch;
  const auto report = simulator.run();
  return {static_cast<double>(report.messages), watch.seconds()};
}

/// Messages per second over as many rounds as take about `seconds`.
double measure(const Game& game, double seconds) {
  for (int rounds = 2;; rounds *= 2) {
    const Score score = game(rounds);
    if (score.seconds >= seconds / 2) {
      return score.messages / score.seconds;
    }
  }
}

#ifdef SOTTO_HAVE_SIMGRID
/// SimGrid's engine lives once a process, so each game is a child.
Score play_simgrid(int nodes, bool contention, int rounds) {
  std::fflush(stdout);
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) {
    std::perror("pipe");
    std::exit(1);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<double> bandwidths;
    for (int host = 0; host < nodes; ++host) {
      bandwidths.push_back(bandwidth_of(host, contention));
    }
    const double took = play_simgrid_ring(bandwidths, 1e-9 * static_cast<double>(kLatency), kBytes,
                                          contention, rounds);
    const bool told = ::write(ends[1], &took, sizeof took) == sizeof took;
    std::_Exit(told ? 0 : 1);
  }
  ::close(ends[1]);
  double took = 0;
  const bool heard = ::read(ends[0], &took, sizeof took) == sizeof took;
  ::close(ends[0]);
  int status = 1;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0 || !heard) {
    std::fputs("SimGrid failed\n", stderr);
    std::exit(1);
  }
  return {static_cast<double>(nodes) * rounds * (contention ? 2 : 1), took};
}
#endif

void report(const char* engine, int nodes, bool contention, const Game& game, double seconds,
            bool* first) {
  fmt::print(
      "{}\n  {{\"engine\": \"{}\", \"nodes\": {}, \"contention\": {}, \"messages_per_s\": {:.0f}}}",
      *first ? "" : ",", engine, nodes, contention, measure(game, seconds));
  std::fflush(stdout);
  *first = false;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 1;
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--seconds" && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else {
      sizes.push_back(std::max(3, std::atoi(argv[i])));
    }
  }
  if (sizes.empty()) {
    sizes = {64, 1024, 4096};
  }
  fmt::print("{{\"results\": [");
  bool first = true;
  for (const bool contention : {false, true}) {
    for (const int nodes : sizes) {
      const auto run = [&](const char* engine, auto play) {
        report(
            engine, nodes, contention, [&](int rounds) { return play(nodes, contention, rounds); },
            seconds, &first);
      };
#ifdef SOTTO_HAVE_SIMGRID
      run("simgrid", play_simgrid);
#endif
      run("sotto-network", play_network);
      run("sotto", play_simulator);
    }
  }
  fmt::print("\n]}}\n");
  return 0;
}

#include <sotto/sim/simulator.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/sim/lockstep.h>
#include <sotto/topology/registry.h>

#include "job.h"

namespace sotto::test::simulator_test {

namespace {

constexpr SimTime kMs = 1'000'000;

SimulatorOptions options_for(Round rounds) {
  SimulatorOptions options;
  options.rounds = rounds;
  options.nodes[0].compute = {.kind = ComputeTime::Kind::lognormal, .seconds = 0.01, .spread = 0.5};
  options.timeout = 2'000 * kMs;
  options.seed = 3;
  return options;
}

/// One of each kind of exchange.
std::vector<Job> synchronous_jobs() {
  return {
      {.algorithm = "allreduce"},
      {.algorithm = "dpsgd"},
      {.algorithm = "dpsgd", .topology = "one-peer-exponential", .nodes = 8},
      {.algorithm = "dcd", .compressor = "quant:8"},
      {.algorithm = "dcd", .compressor = "quant:8", .topology = "torus:2x3"},
      {.algorithm = "ecd", .compressor = "quant:8"},
      {.algorithm = "choco", .compressor = "topk:0.2", .topology = "complete"},
      {.algorithm = "choco", .compressor = "sign", .topology = "star"},
      {.algorithm = "deepsqueeze", .compressor = "sign"},
      {.algorithm = "apmsqueeze", .compressor = "sign"},
      {.algorithm = "onebit-adam", .compressor = "sign"},
      {.algorithm = "pushsum", .topology = "exponential"},
      {.algorithm = "d2"},
      {.algorithm = "sharded", .compressor = "quant:4"},
      {.algorithm = "sharded:gather=topk:0.3", .compressor = "sign"},
      {.algorithm = "sparseloco", .compressor = "topk:0.1,values=2"},
      {.algorithm = "sparseloco", .interval = 4},
      {.algorithm = "allreduce", .interval = 7, .streaming = {.fragments = 3, .delay = 1}},
      {.algorithm = "qmean",
       .compressor = "quant:4",
       .interval = 5,
       .streaming = {.fragments = 2, .delay = 1, .mix = {.carry = true}}},
      {.algorithm = "sparseloco",
       .compressor = "topk:0.1,values=2",
       .interval = 6,
       .streaming = {.delay = 5, .mix = {.own = 0.5}}},
      {.algorithm = "dpsgd", .interval = 3, .outer_after_mixing = true},
      {.algorithm = "choco", .compressor = "sign", .interval = 3, .outer_after_mixing = true},
  };
}

}  // namespace

TEST_CASE(
    "synchronous algorithms give the bits of the lock-step driver, with and without overlap") {
  for (Job job : synchronous_jobs()) {
    CAPTURE(job.algorithm);
    CAPTURE(job.topology);
    Job reference = job;
    auto algorithms = reference.make();
    LockstepDriver lockstep;
    for (auto& algorithm : algorithms) {
      lockstep.add(std::move(algorithm));
    }
    REQUIRE(lockstep.run(50, gradient).ok());
    Platform platform = make_star(job.nodes, 1e5, 3 * kMs);
    platform.set_egress(1, {.name = "slow", .bytes_per_s = 2e4, .latency = 20 * kMs});
    for (const bool overlap : {true, false}) {
      auto options = options_for(50);
      options.overlap = overlap;
      const auto report = simulate(job, options, platform);
      for (const auto& node : report.nodes) {
        CHECK_MESSAGE(node.status.ok(), node.status.message());
        CHECK(node.rounds == 50);
        CHECK(node.compute + node.codec + node.wire + node.idle == node.end - node.start);
      }
      CHECK(job.x == reference.x);
      std::uint64_t bytes = 0;
      double carried = 0;
      for (const auto& edge : report.edges) {
        bytes += edge.bytes;
      }
      for (const auto& link : report.links) {
        carried += link.bytes;
        CHECK(link.utilisation <= 1 + 1e-9);
      }
      std::uint64_t expected = 0;
      for (const auto& [edge, traffic] : lockstep.traffic()) {
        expected += traffic.bytes;
      }
      CHECK(bytes == expected);
      CHECK(carried == 2 * static_cast<double>(bytes));
    }
  }
}

TEST_CASE("AD-PSGD's nodes go at their own pace and give the same bits") {
  Job job{.algorithm = "adpsgd", .nodes = 7};
  Job even = job;
  auto options = options_for(40);
  options.nodes.assign(7, options.nodes[0]);
  options.nodes[2].compute.slowdown = 5;
  const auto report = simulate(job, options, make_star(7, 1e6, kMs));
  options.nodes[2].compute.slowdown = 1;
  simulate(even, options, make_star(7, 1e4, 10 * kMs));
  CHECK(job.x == even.x);
  CHECK(report.largest_lead >= 1);
}

TEST_CASE("the trace and the models are the same for any number of threads, and differ by seed") {
  Job job{.algorithm = "choco", .compressor = "topk:0.2", .topology = "torus:3x4", .nodes = 12};
  auto options = options_for(30);
  const Platform platform = make_star(12, 1e5, 2 * kMs);
  const auto one = simulate(job, options, platform);
  const auto models = job.x;
  for (const int threads : {2, 5}) {
    options.threads = threads;
    const auto more = simulate(job, options, platform);
    CHECK(more.trace_sha256 == one.trace_sha256);
    CHECK(more.end == one.end);
    CHECK(job.x == models);
  }
  options.seed = 4;
  CHECK(simulate(job, options, platform).trace_sha256 != one.trace_sha256);
}

TEST_CASE(
    "buckets give the same models in virtual time as in lock step, and the same on any link") {
  for (const AlgorithmInfo& info : algorithms()) {
    if (!info.takes_buckets()) {
      continue;
    }
    CAPTURE(info.name);
    Job job{
        .algorithm = std::string(info.name), .nodes = 4, .dimension = 2 * 4096 + 7, .buckets = 3};
    Job reference = job;
    auto algorithms = reference.make();
    LockstepDriver lockstep;
    for (auto& algorithm : algorithms) {
      lockstep.add(std::move(algorithm));
    }
    REQUIRE(lockstep.run(20, gradient).ok());
    for (const bool overlap : {true, false}) {
      for (const auto& transport : {TransportModel::gloo(), TransportModel::zmq()}) {
        auto options = options_for(20);
        options.overlap = overlap;
        options.transport = transport;
        const auto report = simulate(job, options, make_star(4, 1e6, 3 * kMs));
        for (const auto& node : report.nodes) {
          CHECK_MESSAGE(node.status.ok(), node.status.message());
          CHECK(node.rounds == 20);
        }
        CHECK(job.x == reference.x);
      }
    }
  }
}

TEST_CASE("buckets: encoding, wire and decoding of one round overlap") {
  // Four buckets of 4096 elements, 16,384 bytes each and as many on the wire, to one neighbour.
  const auto time_of = [](std::uint32_t buckets) {
    Job job{.algorithm = "choco", .compressor = "none", .nodes = 2, .dimension = 4 * 4096};
    job.buckets = buckets;
    SimulatorOptions options;
    options.rounds = 1;
    options.nodes[0].codec.encode_s_per_byte = 10e-3 / 16384;
    options.nodes[0].codec.decode_s_per_byte = 20e-3 / 16384;
    return to_seconds(simulate(job, options, make_star(2, 16384 / 0.1, 0)).end);
  };
  // Whole: 4 × 10 ms of encoding, 400 ms on the wire, 4 × 20 ms of decoding. In buckets only the
  // first is encoded while nothing is on the wire, and only the last decoded after it. Headers are
  // 0.4 ms each.
  CHECK(time_of(1) == doctest::Approx(0.040 + 0.400 + 0.080).epsilon(0.005));
  CHECK(time_of(4) == doctest::Approx(0.010 + 0.400 + 0.020).epsilon(0.005));
}

TEST_CASE("exchanges hide behind gradients exactly where the algorithm allows it") {
  // 10 ms of gradient; a frame of D-PSGD takes 304 bytes / 60,800 bytes/s = 5 ms a neighbour.
  const auto time_of = [](const char* algorithm, bool overlap, double seconds,
                          bool delayed = false) {
    Job job{.algorithm = algorithm, .nodes = 4};
    job.delayed_gradient = delayed;
    SimulatorOptions options;
    options.rounds = 100;
    options.nodes[0].compute.seconds = seconds;
    options.overlap = overlap;
    return simulate(job, options, make_star(4, 60'800, 0)).end;
  };
  CHECK(time_of("dpsgd", true, 0.02) == 100 * 20 * kMs);
  CHECK(time_of("dpsgd", false, 0.02) == 100 * 30 * kMs);
  CHECK(time_of("dpsgd", true, 0.004) == 100 * 10 * kMs);
  // DCD's last exchange has no gradient to hide behind.
  CHECK(time_of("dcd", true, 0.02) < 100 * 20 * kMs + 11 * kMs);
  CHECK(time_of("dcd", false, 0.02) > 100 * 20 * kMs + 50 * kMs);
  CHECK(time_of("allreduce", true, 0.02) == time_of("allreduce", false, 0.02));
  // With gradients that do not wait the others hide theirs as DCD does.
  for (const char* algorithm : {"choco", "deepsqueeze", "pushsum"}) {
    CAPTURE(algorithm);
    CHECK(time_of(algorithm, true, 0.1, true) < 100 * 100 * kMs + 31 * kMs);
    CHECK(time_of(algorithm, true, 0.1, false) > 100 * 100 * kMs + 200 * kMs);
    CHECK(time_of(algorithm, true, 0, true) <= time_of(algorithm, true, 0, false));
  }
}

TEST_CASE("the exchange of a fragment hides behind the steps until it is applied") {
  // 10 ms of gradient; a ring of two sends half a fragment of 80 bytes twice, 5 ms a time, and has
  // a latency of 4 ms each.
  constexpr Round kRounds = 60;
  const auto time_of = [](const Streaming& streaming, bool overlap = true) {
    Job job{.algorithm = "allreduce", .nodes = 2, .interval = 6, .streaming = streaming};
    auto options = options_for(kRounds);
    options.overlap = overlap;
    options.nodes[0].compute = {.seconds = 0.01};
    return simulate(job, options, make_star(2, 5e4, 2 * kMs)).end;
  };
  const SimTime compute = kRounds * 10 * kMs;
  const SimTime whole = time_of({});
  const SimTime cut = time_of({.fragments = 3});
  CHECK(whole > compute + 10 * 2 * 4 * kMs);
  CHECK(cut > whole);  // latencies of three fragments
  CHECK(time_of({.fragments = 1, .delay = 5}) < compute + whole / 10);
  CHECK(time_of({.fragments = 2, .delay = 2}) < compute + 30 * kMs);
  CHECK(time_of({.fragments = 2, .delay = 2}, false) > compute + 20 * 2 * 4 * kMs);
}

TEST_CASE("buckets with delayed gradients hide latency behind each other") {
  constexpr Round kRounds = 20;
  constexpr SimTime kLatency = 50 * kMs;
  const auto time_of = [](const char* algorithm, bool delayed, SimTime latency) {
    Job job{.algorithm = algorithm, .nodes = 2, .dimension = 4 * 4096};
    job.compressor = "none";
    job.buckets = 4;
    job.delayed_gradient = delayed;
    SimulatorOptions options;
    options.rounds = kRounds;
    return simulate(job, options, make_star(2, 16384 / 0.1, latency)).end;
  };
  for (const char* algorithm : {"choco", "deepsqueeze", "pushsum"}) {
    CAPTURE(algorithm);
    // Once a round, or once in all: four buckets are on the wire for longer than the way takes.
    const auto lag = [&](bool delayed) {
      return time_of(algorithm, delayed, kLatency) - time_of(algorithm, delayed, 0);
    };
    CHECK(lag(false) >= static_cast<SimTime>(kRounds) * kLatency);
    CHECK(lag(true) <= 3 * kLatency);
  }
}

TEST_CASE("the topology changes the time, slower links never help, coding costs") {
  const auto time_of = [](const char* topology, double bytes_per_s, double encode) {
    Job job{.topology = topology, .nodes = 9};
    SimulatorOptions options;
    options.rounds = 20;
    options.nodes[0].compute.seconds = 0.001;
    options.nodes[0].codec = {.encode_s_per_byte = encode, .decode_s_per_byte = encode};
    return simulate(job, options, make_star(9, bytes_per_s, kMs)).end;
  };
  const SimTime ring = time_of("ring", 1e5, 0);
  const SimTime complete = time_of("complete", 1e5, 0);
  const SimTime star = time_of("star", 1e5, 0);
  CHECK(ring < complete);
  CHECK(ring < star);
  for (const char* topology : {"ring", "complete", "star", "torus:3x3"}) {
    CHECK(time_of(topology, 5e4, 0) >= time_of(topology, 1e5, 0));
    CHECK(time_of(topology, 1e5, 1e-5) > time_of(topology, 1e5, 0));
  }
}

TEST_CASE("a dead process is noticed after a latency, a silent one at the deadline") {
  Job job{.topology = "complete", .nodes = 4};
  auto options = options_for(1000);
  options.nodes[0].compute = {.seconds = 0.01};
  options.events = {{.at = 105 * kMs, .node = 1, .kind = NodeEvent::Kind::crash}};
  const Platform platform = make_star(4, 1e7, 4 * kMs);
  auto report = simulate(job, options, platform);
  CHECK(report.nodes[1].end == 105 * kMs);
  CHECK(report.nodes[0].status.fault() == Fault::peer_lost);
  CHECK(report.nodes[0].status.message() == "node 0, round 11: node 1 is lost");
  CHECK(report.end < 130 * kMs);
  options.events[0].kind = NodeEvent::Kind::vanish;
  report = simulate(job, options, platform);
  CHECK(report.nodes[0].status.fault() == Fault::deadline);
  CHECK(report.nodes[0].status.message() ==
        "node 0, round 11: nothing was heard for 2 s from node 1");
  CHECK(report.end > 2'100 * kMs);
  CHECK(report.end < 2'130 * kMs);
}

TEST_CASE("who leaves finishes the round under way, and ends those who need it") {
  Job job{.algorithm = "dcd", .compressor = "quant:8", .nodes = 4};
  auto options = options_for(1000);
  options.nodes[0].compute = {.seconds = 0.01};
  options.events = {{.at = 105 * kMs, .node = 1, .kind = NodeEvent::Kind::leave}};
  const auto report = simulate(job, options, make_star(4, 1e7, 4 * kMs));
  CHECK(report.nodes[1].status.ok());
  CHECK(report.nodes[1].rounds == 11);
  for (const std::size_t other : {0U, 2U, 3U}) {
    CHECK(report.nodes[other].status.fault() == Fault::peer_lost);
    CHECK(report.nodes[other].rounds >= 11);
  }
  CHECK(report.end < 200 * kMs);
}

TEST_CASE("who joins late, stands still, or is cut off, holds the others up but changes no bit") {
  Job job{.algorithm = "dcd", .compressor = "quant:8"};
  Platform platform = make_star(6, 1e6, kMs);
  auto options = options_for(40);
  const auto plain = simulate(job, options, platform);
  const auto models = job.x;

  options.nodes.assign(6, options.nodes[0]);
  options.nodes[3].start = 500 * kMs;
  const auto late = simulate(job, options, platform);
  CHECK(job.x == models);
  CHECK(late.end >= plain.end + 400 * kMs);
  CHECK(late.nodes[3].start == 500 * kMs);

  options.nodes[3].start = 0;
  options.events = {{.at = 100 * kMs, .node = 0, .kind = NodeEvent::Kind::suspend},
                    {.at = 900 * kMs, .node = 0, .kind = NodeEvent::Kind::resume}};
  const auto paused = simulate(job, options, platform);
  CHECK(job.x == models);
  CHECK(paused.end >= plain.end + 700 * kMs);
  for (const auto& node : paused.nodes) {
    CHECK(node.compute + node.codec + node.wire + node.idle == node.end - node.start);
  }

  options.events.clear();
  std::vector<LinkId> links = {0, 1};  // out of and into node 0
  Platform healed = platform;
  healed.cut(links, 100 * kMs, 900 * kMs);
  const auto cut = simulate(job, options, healed);
  CHECK(job.x == models);
  CHECK(cut.end >= plain.end + 700 * kMs);

  Platform parted = platform;
  parted.cut(links, 100 * kMs, kNever);
  const auto lost = simulate(job, options, parted);
  CHECK(std::any_of(lost.nodes.begin(), lost.nodes.end(),
                    [](const NodeReport& node) { return node.status.fault() == Fault::deadline; }));
  CHECK(lost.end < 100 * kMs + 8 * options.timeout);
}

TEST_CASE("a node that stands still has exactly what it had left to do when it goes on") {
  // A gradient of 1 s; frames arrive 1 ms later, or at once when they waited.
  Job job{.topology = "complete", .nodes = 2};
  auto options = options_for(1);
  options.timeout = 60'000 * kMs;
  options.nodes[0].compute = {.seconds = 1};
  options.overlap = false;
  const Platform platform = make_star(2, kUnlimited, kMs);
  const SimTime plain = simulate(job, options, platform).end;
  const auto suspended = [&](SimTime from, SimTime until) {
    options.events = {{.at = from, .node = 0, .kind = NodeEvent::Kind::suspend},
                      {.at = until, .node = 0, .kind = NodeEvent::Kind::resume}};
    return simulate(job, options, platform);
  };
  const auto report = suspended(150 * kMs, 5'000 * kMs);
  for (const auto& node : report.nodes) {
    CHECK(node.status.ok());
    CHECK(node.compute + node.codec + node.wire + node.idle == node.end - node.start);
  }
  CHECK(report.end == plain + 4'850 * kMs);
  // What is under way when it goes on again, too, has stood still.
  CHECK(suspended(150 * kMs, 250 * kMs).end == plain + 100 * kMs);
  CHECK(suspended(150 * kMs, 150 * kMs).end == plain);
}

TEST_CASE("what comes due while a node stands still is done when it goes on") {
  // D-PSGD's exchange hides behind the gradient: here the frame comes into the suspension.
  Job job{.topology = "complete", .nodes = 2};
  auto options = options_for(1);
  options.timeout = 60'000 * kMs;
  options.nodes.assign(2, {.compute = {.seconds = 0.2}});
  options.nodes[1].start = 1'000 * kMs;
  options.events = {{.at = 150 * kMs, .node = 0, .kind = NodeEvent::Kind::suspend},
                    {.at = 5'000 * kMs, .node = 0, .kind = NodeEvent::Kind::resume}};
  // 50 ms of the gradient were left.
  const auto report = simulate(job, options, make_star(2, kUnlimited, 3 * kMs));
  CHECK(report.nodes[0].end == 5'050 * kMs);
}

TEST_CASE("a node that nothing will wake ends when nothing else is left to happen") {
  const auto faults = [](const SimulatorOptions& options) {
    Job job{.topology = "complete", .nodes = 3};
    for (const auto& node : simulate(job, options, make_star(3, 1e6, kMs)).nodes) {
      CHECK_MESSAGE(
          (node.status.fault() == Fault::deadline || node.status.fault() == Fault::peer_lost),
          node.status.message());
    }
  };
  auto options = options_for(1000);
  for (Rank node = 0; node < 3; ++node) {
    options.events.push_back({.at = 50 * kMs, .node = node, .kind = NodeEvent::Kind::suspend});
  }
  faults(options);
  options.timeout = kNever;
  options.events.resize(1);
  faults(options);
  // Times beyond the end of time.
  options.events.clear();
  options.nodes.assign(3, options.nodes[0]);
  options.nodes[1].start = 7 * kMs;
  options.nodes[1].compute = {.kind = ComputeTime::Kind::lognormal, .seconds = 1e15, .spread = 10};
  faults(options);
}

TEST_CASE("hooks see each round of each node, then of all, and may end the run") {
  Job job{.nodes = 5};
  std::vector<Round> of_nodes(5, 0);
  std::vector<Round> of_all;
  SimulatorHooks hooks;
  hooks.round_finished = [&](Rank node, Round round, SimTime) {
    CHECK(of_nodes[static_cast<std::size_t>(node)]++ == round);
  };
  hooks.round_finished_by_all = [&](Round round, SimTime) {
    of_all.push_back(round);
    CHECK(*std::min_element(of_nodes.begin(), of_nodes.end()) == round + 1);
    return round < 6;
  };
  const auto report = simulate(job, options_for(20), make_star(5, 1e6, kMs), hooks);
  CHECK(of_all == std::vector<Round>{0, 1, 2, 3, 4, 5, 6});
  CHECK(report.nodes[0].rounds >= 7);
  CHECK(report.nodes[0].rounds < 12);
}

TEST_CASE("rounds without end are run until a hook ends them") {
  Job job{.nodes = 4};
  auto options = options_for(~Round{0});
  SimulatorHooks hooks;
  hooks.round_finished_by_all = [](Round round, SimTime) { return round < 30; };
  const auto report = simulate(job, options, make_star(4, 1e6, kMs), hooks);
  for (const auto& node : report.nodes) {
    CHECK(node.status.ok());
    CHECK(node.rounds >= 31);
  }
}

TEST_CASE("no gradient is being taken once the run has ended") {
  Job job{.topology = "complete", .nodes = 2};
  auto options = options_for(1);
  options.nodes[0].compute = {.seconds = 1};
  options.threads = 3;
  options.events = {{.at = kMs, .node = 0}, {.at = kMs, .node = 1}};
  std::atomic<int> begun = 0;
  std::atomic<int> taken = 0;
  std::atomic<bool> ended = false;
  const auto slow = [&](Rank, Round, std::span<const float>, std::span<float>) {
    ++begun;
    for (int i = 0; !ended || i < 20'000; i += ended ? 1 : 0) {
      std::this_thread::yield();
    }
    ++taken;
  };
  SimulatorHooks hooks;
  hooks.trace = [&](const TraceEntry& entry) {
    while (entry.kind == TraceEntry::Kind::ended && begun < 2) {
      std::this_thread::yield();
    }
    ended = entry.kind == TraceEntry::Kind::ended;
  };
  Simulator simulator(make_star(2, 1e6, kMs), options, job.make(), slow, hooks);
  const auto report = simulator.run();
  CHECK(taken == 2);
  CHECK(report.nodes[0].status.fault() == Fault::io);
}

TEST_CASE("compute times have the declared distribution and are keyed, not drawn in turn") {
  const auto mean_of = [](const ComputeTime& time) {
    double sum = 0;
    for (Round round = 0; round < 20'000; ++round) {
      sum += to_seconds(draw(time, 1, 4, round));
    }
    return sum / 20'000;
  };
  using Kind = ComputeTime::Kind;
  CHECK(mean_of({.kind = Kind::fixed, .seconds = 2, .slowdown = 3}) == doctest::Approx(6));
  CHECK(mean_of({.kind = Kind::uniform, .seconds = 2, .spread = 0.5}) ==
        doctest::Approx(2).epsilon(0.01));
  CHECK(mean_of({.kind = Kind::exponential, .seconds = 2}) == doctest::Approx(2).epsilon(0.03));
  CHECK(mean_of({.kind = Kind::lognormal, .seconds = 2, .spread = 0.5}) ==
        doctest::Approx(2 * std::exp(0.125)).epsilon(0.02));
  CHECK(mean_of({.seconds = 1, .stall_probability = 0.1, .stall_factor = 11}) ==
        doctest::Approx(2).epsilon(0.03));
  const ComputeTime time{.kind = Kind::exponential, .seconds = 2};
  CHECK(draw(time, 1, 4, 7) == draw(time, 1, 4, 7));
  CHECK(draw(time, 1, 4, 7) != draw(time, 1, 5, 7));
  CHECK_THROWS_AS(validate({.seconds = -1}), Error);
  CHECK_THROWS_AS(validate({.kind = Kind::uniform, .seconds = 1, .spread = 2}), Error);
}

TEST_CASE("a simulation that cannot be is refused") {
  Job job{.nodes = 4};
  const auto refused = [&](const SimulatorOptions& options, const Platform& platform) {
    CHECK_THROWS_AS(Simulator(platform, options, job.make(), gradient), Error);
  };
  const Platform star = make_star(4, 1e6, 0);
  refused(options_for(1), make_star(3, 1e6, 0));
  refused(options_for(1), Platform(4));
  auto options = options_for(1);
  options.nodes.resize(3);
  refused(options, star);
  options = options_for(1);
  options.threads = 0;
  refused(options, star);
  options = options_for(1);
  options.events = {{.at = 0, .node = 4}};
  refused(options, star);
  options = options_for(1);
  options.network.latency_factor = 0;
  refused(options, star);
}

}  // namespace sotto::test::simulator_test

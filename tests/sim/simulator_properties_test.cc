// What must hold of every simulation, on random platforms, for many algorithms and both transports.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/philox.h>
#include <sotto/optim/registry.h>
#include <sotto/sim/simulator.h>
#include <sotto/topology/registry.h>

#include "job.h"

namespace sotto::test::simulator_properties_test {

namespace {

constexpr SimTime kMs = 1'000'000;

const std::vector<Job>& jobs() {
  static const std::vector<Job> all = {
      {.algorithm = "dpsgd", .topology = "torus:2x3"},
      {.algorithm = "dcd", .compressor = "quant:8", .topology = "ring"},
      {.algorithm = "choco", .compressor = "sign", .topology = "complete"},
      {.algorithm = "allreduce"},
      {.algorithm = "apmsqueeze", .compressor = "sign"},
      {.algorithm = "adpsgd", .topology = "ring"},
      {.algorithm = "pushsum", .topology = "exponential"},
      {.algorithm = "beer", .compressor = "sign", .topology = "star"},
  };
  return all;
}

SimulatorOptions random_options(RandomStream& random, Round rounds) {
  SimulatorOptions options;
  options.rounds = rounds;
  options.nodes[0].compute = {
      .kind = ComputeTime::Kind::lognormal, .seconds = 0.01, .spread = random.uniform()};
  options.overlap = random.below(2) == 0;
  options.timeout = 2'000 * kMs;
  options.seed = random.below(1'000);
  options.transport = random.below(2) == 0 ? TransportModel::gloo() : TransportModel::zmq();
  if (random.below(2) == 0) {
    options.network = NetworkModel::linux_tcp();
    options.network.initial_window_bytes = 100;  // frames are a few hundred bytes here
  }
  return options;
}

/// Hosts of different speeds, whose links change now and then; all bandwidths times `scale`.
Platform random_platform(RandomStream& random, int hosts, double scale) {
  Platform platform(hosts);
  platform.set_default_route({});
  for (Rank host = 0; host < hosts; ++host) {
    const auto spec = [&] {
      return LinkSpec{.bytes_per_s = scale * 1e4 * std::pow(1e2, random.uniform()),
                      .latency = static_cast<SimTime>(random.below(10 * kMs))};
    };
    platform.set_egress(host, spec());
    const LinkId in = platform.set_ingress(host, spec());
    for (auto changes = random.below(3); changes > 0; --changes) {
      platform.add_change({.at = static_cast<SimTime>(random.below(200 * kMs)),
                           .link = in,
                           .bytes_per_s = scale * 1e4 * std::pow(1e2, random.uniform()),
                           .latency = static_cast<SimTime>(random.below(20 * kMs))});
    }
  }
  return platform;
}

}  // namespace

TEST_CASE("half of all bandwidths ends no run earlier, and no link carries more than it can") {
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::test});
    Job job = jobs()[random.below(jobs().size())];
    CAPTURE(job.algorithm);
    const auto options = random_options(random, 12);
    CAPTURE(options.transport.on_demand);
    RandomStream again = random;
    const auto fast = simulate(job, options, random_platform(random, job.nodes, 1));
    const auto slow = simulate(job, options, random_platform(again, job.nodes, 0.5));
    CHECK(slow.end >= fast.end);
    CHECK(slow.messages == fast.messages);
    for (const auto* report : {&fast, &slow}) {
      double sent = 0;
      double carried = 0;
      for (const EdgeReport& edge : report->edges) {
        sent += static_cast<double>(edge.bytes);
      }
      for (const LinkReport& link : report->links) {
        carried += link.bytes;
        CHECK(link.utilisation <= 1 + 1e-9);
      }
      CHECK(carried == 2 * sent);
      for (const NodeReport& node : report->nodes) {
        CHECK_MESSAGE(node.status.ok(), node.status.message());
        CHECK(node.compute + node.codec + node.wire + node.idle == node.end - node.start);
      }
    }
  }
}

TEST_CASE("whatever happens to a node at any event, no node waits for ever") {
  enum class Blow { crash, vanish, leave, suspend, part, kinds };
  for (Job job : jobs()) {
    for (const auto& transport : {TransportModel::gloo(), TransportModel::zmq()}) {
      CAPTURE(job.algorithm);
      CAPTURE(transport.on_demand);
      const Platform platform = make_star(job.nodes, 3e4, kMs);
      SimulatorOptions options;
      options.rounds = 4;
      options.nodes[0].compute = {
          .kind = ComputeTime::Kind::lognormal, .seconds = 0.01, .spread = 0.5};
      options.timeout = 2'000 * kMs;
      options.transport = transport;
      std::vector<SimTime> times;
      SimulatorHooks hooks;
      hooks.trace = [&](const TraceEntry& entry) { times.push_back(entry.time); };
      const auto whole = simulate(job, options, platform, hooks);
      times.erase(std::unique(times.begin(), times.end()), times.end());
      for (std::size_t i = 0; i < times.size(); i += 1 + times.size() / 60) {
        for (int k = 0; k < static_cast<int>(Blow::kinds); ++k) {
          CAPTURE(times[i]);
          CAPTURE(k);
          const auto blow = static_cast<Blow>(k);
          Platform struck = platform;
          options.events.clear();
          if (blow == Blow::part) {
            const std::vector<LinkId> links = {4, 5};  // out of and into node 2
            struck.cut(links, times[i], kNever);
          } else {
            constexpr NodeEvent::Kind kKinds[] = {NodeEvent::Kind::crash, NodeEvent::Kind::vanish,
                                                  NodeEvent::Kind::leave, NodeEvent::Kind::suspend};
            options.events = {{.at = times[i], .node = 2, .kind = kKinds[k]}};
          }
          const auto report = simulate(job, options, struck);
          CHECK(report.end <= whole.end + (job.nodes + 2) * options.timeout);
          for (std::size_t n = 0; n < report.nodes.size(); ++n) {
            const Status& status = report.nodes[n].status;
            const bool left = blow == Blow::leave && n == 2;
            const bool done = status.ok() && (report.nodes[n].rounds == 4 || left);
            const bool noticed = status.fault() == Fault::peer_lost ||
                                 status.fault() == Fault::deadline ||
                                 (n == 2 && status.fault() == Fault::io);
            CHECK_MESSAGE((done || noticed), status.message());
          }
        }
      }
    }
  }
}

TEST_CASE("on demand, a frame leaves a latency after its receive was posted, and changes no bit") {
  // A frame of 304 bytes takes 5 ms, a latency 3 ms.
  Job eager{.topology = "complete", .nodes = 2};
  Job awaited = eager;
  SimulatorOptions options;
  options.rounds = 1;
  options.overlap = false;
  options.nodes.resize(2);
  const Platform platform = make_star(2, 60'800, 3 * kMs);
  CHECK(simulate(eager, options, platform).end == 8 * kMs);
  options.transport = TransportModel::gloo();
  CHECK(simulate(awaited, options, platform).end == 11 * kMs);
  CHECK(awaited.x == eager.x);
  // Node 0 has asked long ago when node 1 comes, and node 1 asks then.
  options.nodes[1].start = 100 * kMs;
  auto report = simulate(awaited, options, platform);
  CHECK(report.nodes[0].end == 108 * kMs);
  CHECK(report.nodes[1].end == 111 * kMs);
  options.transport = TransportModel::zmq();
  report = simulate(awaited, options, platform);
  CHECK(report.nodes[0].end == 108 * kMs);
  CHECK(report.nodes[1].end == 100 * kMs);
}

TEST_CASE("what is awaited while its sender stands still leaves when it goes on") {
  Job job{.topology = "complete", .nodes = 2};
  SimulatorOptions options;
  options.rounds = 1;
  options.overlap = false;
  options.transport = TransportModel::gloo();
  options.events = {{.at = kMs, .node = 0, .kind = NodeEvent::Kind::suspend},
                    {.at = 50 * kMs, .node = 0, .kind = NodeEvent::Kind::resume}};
  const auto report = simulate(job, options, make_star(2, 60'800, 3 * kMs));
  CHECK(report.nodes[0].end == 50 * kMs);
  CHECK(report.nodes[1].end == 58 * kMs);
}

}  // namespace sotto::test::simulator_properties_test

// SimGrid as oracle: the same platform and messages, equal completion times.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <sotto/base/philox.h>
#include <sotto/sim/network/network.h>

#include "support/skip.h"

namespace sotto::test::simgrid_test {

#ifdef SOTTO_SIMGRID_ORACLE

namespace {

struct TimedMessage {
  SimTime start = 0;
  Rank from = 0;
  Rank to = 0;
  std::uint64_t bytes = 0;
};

/// A graph of directed links, routes along shortest paths, and messages.
struct Case {
  std::string name;
  int hosts = 0;
  bool half_duplex = false;
  struct Hop {
    Rank from = 0;
    Rank to = 0;
    LinkId link = 0;
  };
  std::vector<Hop> hops = {};
  std::vector<LinkSpec> links = {};
  std::vector<TimedMessage> messages = {};

  void connect(Rank a, Rank b, RandomStream& random) {
    const auto add = [&] {
      LinkSpec spec;
      spec.bytes_per_s = 1e5 * std::pow(100.0, random.uniform());
      spec.latency = 100'000 + static_cast<SimTime>(random.below(50'000'000));
      links.push_back(spec);
      return static_cast<LinkId>(links.size() - 1);
    };
    hops.push_back({a, b, add()});
    hops.push_back({b, a, half_duplex ? hops.back().link : add()});
  }

  /// Links from `from` to `to`, breadth first.
  std::vector<LinkId> path(Rank from, Rank to) const {
    std::vector<const Hop*> came(static_cast<std::size_t>(hosts), nullptr);
    std::vector<Rank> front = {from};
    for (std::size_t i = 0; i < front.size(); ++i) {
      for (const Hop& hop : hops) {
        auto& by = came[static_cast<std::size_t>(hop.to)];
        if (hop.from == front[i] && hop.to != from && by == nullptr) {
          by = &hop;
          front.push_back(hop.to);
        }
      }
    }
    std::vector<LinkId> links_back;
    for (Rank at = to; at != from; at = came[static_cast<std::size_t>(at)]->from) {
      links_back.push_back(came[static_cast<std::size_t>(at)]->link);
    }
    return {links_back.rbegin(), links_back.rend()};
  }
};

void add_graph(Case& c, std::uint64_t seed, RandomStream& random) {
  switch (seed % 4) {
    case 0:
      c.name = "ring";
      c.hosts = 3 + static_cast<int>(random.below(10));
      for (Rank i = 0; i < c.hosts; ++i) {
        c.connect(i, (i + 1) % c.hosts, random);
      }
      break;
    case 1:
      c.name = "star";
      c.hosts = 3 + static_cast<int>(random.below(12));
      for (Rank i = 1; i < c.hosts; ++i) {
        c.connect(0, i, random);
      }
      break;
    case 2: {
      c.name = "torus";
      const auto rows = 3 + static_cast<Rank>(random.below(2));
      const auto columns = 3 + static_cast<Rank>(random.below(3));
      c.hosts = rows * columns;
      for (Rank i = 0; i < c.hosts; ++i) {
        c.connect(i, i / columns * columns + (i + 1) % columns, random);
        c.connect(i, (i + columns) % c.hosts, random);
      }
      break;
    }
    default:
      c.name = "random graph";
      c.hosts = 4 + static_cast<int>(random.below(10));
      for (Rank i = 1; i < c.hosts; ++i) {
        c.connect(i, static_cast<Rank>(random.below(static_cast<std::uint64_t>(i))), random);
      }
      for (int extra = 0; extra < c.hosts / 2; ++extra) {
        const auto a = static_cast<Rank>(random.below(static_cast<std::uint64_t>(c.hosts - 1)));
        c.connect(a, c.hosts - 1, random);
      }
  }
}

Case make_case(std::uint64_t seed, bool half_duplex) {
  RandomStream random({.seed = seed, .purpose = Purpose::test});
  Case c;
  c.half_duplex = half_duplex;
  add_graph(c, seed, random);
  const auto hosts = static_cast<std::uint64_t>(c.hosts);
  const auto messages = 5 + random.below(60);
  for (std::uint64_t i = 0; i < messages; ++i) {
    TimedMessage message;
    message.start = random.below(3) == 0 ? 0 : static_cast<SimTime>(random.below(2'000'000'000));
    message.from = static_cast<Rank>(random.below(hosts));
    message.to = static_cast<Rank>(
        (static_cast<std::uint64_t>(message.from) + 1 + random.below(hosts - 1)) % hosts);
    message.bytes = 10'000 + random.below(1'000'000);
    c.messages.push_back(message);
  }
  return c;
}

std::vector<double> ours(const Case& c, const NetworkModel& model) {
  Platform platform(c.hosts);
  for (const LinkSpec& link : c.links) {
    platform.add_link(link);
  }
  for (Rank from = 0; from < c.hosts; ++from) {
    for (Rank to = 0; to < c.hosts; ++to) {
      if (from != to) {
        platform.set_route(from, to, c.path(from, to));
      }
    }
  }
  EventQueue queue;
  Network network(platform, model, 1, queue);
  for (std::uint32_t i = 0; i < c.messages.size(); ++i) {
    network.connect(platform, c.messages[i].from, c.messages[i].to);
    queue.push({.time = c.messages[i].start, .subject = i, .kind = Network::kKinds});
  }
  std::vector<double> times(c.messages.size(), -1);
  while (!queue.empty()) {
    const Event event = queue.pop();
    if (event.kind == Network::kKinds) {
      network.send(event.subject, c.messages[event.subject].bytes);
    } else if (const auto arrival = network.handle(event)) {
      times[arrival->connection] = to_seconds(queue.now());
    }
    if (queue.next_time() > queue.now()) {
      network.settle();
    }
  }
  return times;
}

std::vector<double> simgrids(const Case& c, const std::string& settings) {
  const auto file = std::filesystem::temp_directory_path() / fmt::format("sotto-{}", ::getpid());
  {
    std::ofstream out(file);
    out << fmt::format("{}\n{}\n", c.hosts, c.links.size());
    for (const LinkSpec& link : c.links) {
      out << fmt::format("{} {}\n", link.bytes_per_s, to_seconds(link.latency));
    }
    out << c.hosts * (c.hosts - 1) << '\n';
    for (Rank from = 0; from < c.hosts; ++from) {
      for (Rank to = 0; to < c.hosts; ++to) {
        if (from == to) {
          continue;
        }
        const auto path = c.path(from, to);
        out << fmt::format("{} {} {}", from, to, path.size());
        for (const LinkId link : path) {
          out << ' ' << link;
        }
        out << '\n';
      }
    }
    out << c.messages.size() << '\n';
    for (const TimedMessage& m : c.messages) {
      out << fmt::format("{} {} {} {}\n", to_seconds(m.start), m.from, m.to, m.bytes);
    }
  }
  const std::string command = fmt::format("'{}' --log=root.thres:error {} < '{}'",
                                          SOTTO_SIMGRID_ORACLE, settings, file.string());
  std::vector<double> times;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  for (double time = 0; std::fscanf(pipe, "%lf", &time) == 1;) {
    times.push_back(time);
  }
  CHECK(::pclose(pipe) == 0);
  std::filesystem::remove(file);
  return times;
}

constexpr const char* kPrecise = " --cfg=surf/precision:1e-12 --cfg=maxmin/precision:1e-9";

double worst_difference(const Case& c, const NetworkModel& model, const std::string& settings) {
  const auto mine = ours(c, model);
  const auto theirs = simgrids(c, settings + kPrecise);
  REQUIRE(mine.size() == theirs.size());
  double worst = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    worst = std::max(worst, std::abs(mine[i] - theirs[i]) / theirs[i]);
  }
  return worst;
}

/// Seeds are 1 and up; SOTTO_SIMGRID_SEED=1000 tries other cases.
std::uint64_t first_seed() {
  const char* text = std::getenv("SOTTO_SIMGRID_SEED");
  return text == nullptr ? 1 : std::stoull(text);
}

}  // namespace

#endif

TEST_CASE("100 random cases with contention end when SimGrid says, raw CM02") {
#ifndef SOTTO_SIMGRID_ORACLE
  SOTTO_SKIP("SimGrid is not installed (libsimgrid-dev)");
#else
  double worst_of_all = 0;
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + 100; ++seed) {
    const Case c = make_case(seed, seed % 8 >= 4);
    CAPTURE(seed);
    CAPTURE(c.name);
    const double worst = worst_difference(
        c, NetworkModel::cm02(),
        "--cfg=network/model:CM02 --cfg=network/latency-factor:1 --cfg=network/bandwidth-factor:1 "
        "--cfg=network/weight-S:0 --cfg=network/TCP-gamma:0 --cfg=network/crosstraffic:0");
    CHECK(worst < 1e-6);
    worst_of_all = std::max(worst_of_all, worst);
  }
  MESSAGE("seeds ", first, " … ", first + 99, ", worst relative difference: ", worst_of_all);
#endif
}

TEST_CASE("random cases with LV08's factors, acknowledgements and weights too") {
#ifndef SOTTO_SIMGRID_ORACLE
  SOTTO_SKIP("SimGrid is not installed (libsimgrid-dev)");
#else
  const std::uint64_t first = first_seed() + 100;
  for (std::uint64_t seed = first; seed < first + 20; ++seed) {
    const Case c = make_case(seed, seed % 8 >= 4);
    CAPTURE(seed);
    CAPTURE(c.name);
    CHECK(worst_difference(c, NetworkModel::lv08(), "--cfg=network/model:LV08") < 1e-6);
  }
#endif
}

}  // namespace sotto::test::simgrid_test

// AD-PSGD: pairwise averaging, each node at its own pace.
#include <sotto/optim/algorithms/ad_psgd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "optim/cluster.h"
#include "optim/other_frames.h"

namespace sotto::test::ad_psgd_test {

namespace {

constexpr std::size_t kDimension = 20;

ClusterOptions options_for(std::string topology, std::size_t nodes = 8) {
  return {.algorithm = "adpsgd",
          .topology = std::move(topology),
          .nodes = nodes,
          .dimension = kDimension,
          .step = {.learning_rate = 0.05}};
}

void still(Rank, Round, std::span<const float>, std::span<float> g) {
  std::fill(g.begin(), g.end(), 0.0F);
}

double disagreement(const Cluster& cluster) {
  const auto mean = cluster.mean();
  double sum = 0;
  for (const auto& model : cluster.x) {
    for (std::size_t k = 0; k < mean.size(); ++k) {
      sum += std::pow(static_cast<double>(model[k]) - mean[k], 2);
    }
  }
  return sum;
}

/// Nodes that each run as far as they can: no node is ahead or behind but by its own pairings.
class Race {
 public:
  explicit Race(Cluster& cluster) : cluster_(cluster), runners_(cluster.x.size()) {}

  /// Lets all run to `rounds`, or until they wait; `slow` keeps its gradient of round 0 to itself.
  void run(Round rounds, const Quadratic& task, std::size_t slow) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < runners_.size(); ++rank) {
        while (advance(rank, rounds, task, rank == slow)) {
          moved = true;
        }
      }
    }
  }

  /// Pairings that a node has done.
  std::size_t pairings(std::size_t rank) const { return runners_[rank].done; }
  /// Whom a node waits for; itself when for nobody.
  Rank awaited(std::size_t rank) const {
    const Runner& runner = runners_[rank];
    return runner.posted ? runner.exchange.receives.at(0).from : static_cast<Rank>(rank);
  }

 private:
  struct Runner {
    Exchange exchange;
    bool posted = false;
    bool begun = false;
    std::size_t done = 0;
  };

  bool advance(std::size_t rank, Round rounds, const Quadratic& task, bool withholds) {
    Algorithm& node = cluster_.driver.node(rank);
    Runner& runner = runners_[rank];
    if (runner.posted) {
      return meet(rank, static_cast<std::size_t>(awaited(rank)));
    }
    if (!runner.begun) {
      if (node.round() == rounds) {
        return false;
      }
      runner.begun = true;
      node.begin_round();
      runner.posted = *node.next_exchange(runner.exchange);
      return true;
    }
    if (withholds) {
      return false;
    }
    std::vector<float> gradient(kDimension);
    task(static_cast<Rank>(rank), node.round(), node.parameters(), gradient);
    Exchange none;
    REQUIRE(node.take_gradient(gradient).ok());
    REQUIRE_FALSE(*node.next_exchange(none));
    runner.begun = false;
    return true;
  }

  /// Carries the pairing of two nodes, if both have come to it.
  bool meet(std::size_t a, std::size_t b) {
    if (!runners_[b].posted || runners_[b].exchange.tag != runners_[a].exchange.tag) {
      return false;
    }
    REQUIRE(awaited(b) == static_cast<Rank>(a));
    const std::vector<std::byte> from_a(runners_[a].exchange.sends.at(0).frame.begin(),
                                        runners_[a].exchange.sends.at(0).frame.end());
    const std::vector<std::byte> from_b(runners_[b].exchange.sends.at(0).frame.begin(),
                                        runners_[b].exchange.sends.at(0).frame.end());
    finish(a, b, from_b);
    finish(b, a, from_a);
    return true;
  }

  void finish(std::size_t rank, std::size_t from, std::span<const std::byte> frame) {
    Algorithm& node = cluster_.driver.node(rank);
    Exchange& exchange = runners_[rank].exchange;
    REQUIRE(exchange.receives.at(0).from == static_cast<Rank>(from));
    Bytes came = copy_of(frame);
    REQUIRE(node.complete(with_frame(exchange, came)).ok());
    runners_[rank].posted = *node.next_exchange(exchange);
    ++runners_[rank].done;
  }

  Cluster& cluster_;
  std::vector<Runner> runners_;
};

/// For each node, how many of its pairings can be done while `slow` does not finish round 0, found
/// from the order of all pairings alone.
std::vector<std::size_t> reachable(const ClusterOptions& options, Round rounds, std::size_t slow) {
  const auto topology = cluster_topology(options);
  struct Meeting {
    Round round;
    std::uint64_t place;
    Rank initiator, a, b;
  };
  std::vector<Meeting> order;
  for (std::size_t rank = 0; rank < options.nodes; ++rank) {
    const auto node = static_cast<Rank>(rank);
    Pairings pairings(*topology, node, options.seed);
    for (Round round = 0; round < rounds; ++round) {
      for (const Pairing& pairing : pairings.of(round)) {
        if (pairing.initiator == node) {
          order.push_back({round, pairing.place, node, node, pairing.partner});
        }
      }
    }
  }
  std::sort(order.begin(), order.end(), [](const Meeting& l, const Meeting& r) {
    return std::tie(l.round, l.place, l.initiator) < std::tie(r.round, r.place, r.initiator);
  });
  std::set<Rank> stuck;
  std::vector<std::size_t> done(options.nodes);
  for (const Meeting& meeting : order) {
    if (meeting.round > 0) {
      for (const Rank node : {meeting.a, meeting.b}) {
        if (node == static_cast<Rank>(slow)) {
          stuck.insert(node);
        }
      }
    }
    if (stuck.contains(meeting.a) || stuck.contains(meeting.b)) {
      stuck.insert(meeting.a);
      stuck.insert(meeting.b);
      continue;
    }
    ++done[static_cast<std::size_t>(meeting.a)];
    ++done[static_cast<std::size_t>(meeting.b)];
  }
  return done;
}

}  // namespace

TEST_CASE("pairings: one initiated a round and node, seen alike from both ends") {
  for (const std::string spec : {"ring", "complete", "star", "matching:5", "torus:2x4"}) {
    CAPTURE(spec);
    const auto topology = make_topology(spec, 8, {.seed = 1});
    for (Round round = 0; round < 50; ++round) {
      std::multiset<std::tuple<std::uint64_t, Rank, Rank, Rank>> seen;
      std::size_t count = 0;
      for (Rank node = 0; node < 8; ++node) {
        Pairings pairings(*topology, node, 7);
        const auto list = pairings.of(round);
        CHECK(list.size() <= 1 + topology->in_edges(node, round).size());
        CHECK(std::is_sorted(list.begin(), list.end(), [](const Pairing& a, const Pairing& b) {
          return std::tie(a.place, a.initiator) < std::tie(b.place, b.initiator);
        }));
        for (const Pairing& pairing : list) {
          CHECK(pairing.partner != node);
          CHECK((pairing.initiator == node || pairing.initiator == pairing.partner));
          seen.insert({pairing.place, pairing.initiator, std::min(node, pairing.partner),
                       std::max(node, pairing.partner)});
          ++count;
        }
      }
      CHECK(count == 16);
      for (const auto& pairing : seen) {
        CHECK(seen.count(pairing) == 2);
      }
    }
  }
}

TEST_CASE("neighbours are drawn alike often") {
  const auto topology = make_topology("complete", 5, {});
  Pairings pairings(*topology, 2, 9);
  std::vector<int> drawn(5);
  constexpr int kRounds = 4000;
  for (Round round = 0; round < kRounds; ++round) {
    for (const Pairing& pairing : pairings.of(round)) {
      drawn[static_cast<std::size_t>(pairing.partner)] += pairing.initiator == 2 ? 1 : 0;
    }
  }
  CHECK(drawn[2] == 0);
  for (const std::size_t peer : {0U, 1U, 3U, 4U}) {
    CHECK(drawn[peer] == doctest::Approx(kRounds / 4).epsilon(0.1));
  }
}

TEST_CASE("averaging in pairs keeps the mean and brings the models together") {
  Cluster cluster(options_for("ring"));
  RandomStream random({.seed = 6, .purpose = Purpose::test});
  for (auto& model : cluster.x) {
    for (float& value : model) {
      value = static_cast<float>(random.normal());
    }
  }
  const auto before = cluster.mean();
  const double apart = disagreement(cluster);
  REQUIRE(cluster.driver.run(100, still).ok());
  const auto after = cluster.mean();
  for (std::size_t k = 0; k < kDimension; ++k) {
    CHECK(std::fabs(after[k] - before[k]) < 1e-6);
  }
  CHECK(disagreement(cluster) < 1e-6 * apart);
}

TEST_CASE("a lone pair holds the same bits after averaging, near the end of float32 too") {
  Cluster cluster(options_for("complete", 2));
  std::fill(cluster.x[0].begin(), cluster.x[0].end(), 3e38F);
  std::fill(cluster.x[1].begin(), cluster.x[1].end(), 2.9e38F);
  cluster.x[0][3] = 0.1F;
  cluster.x[1][3] = 0.7F;
  REQUIRE(cluster.driver.run(1, still).ok());
  CHECK(cluster.x[0] == cluster.x[1]);
  CHECK(cluster.x[0][0] == doctest::Approx(2.95e38));
  CHECK(cluster.x[0][3] == doctest::Approx(0.4));
}

TEST_CASE("a gradient is taken before a round's averagings, and applied after them") {
  Cluster cluster(options_for("complete", 2));
  std::fill(cluster.x[0].begin(), cluster.x[0].end(), 0.0F);
  std::fill(cluster.x[1].begin(), cluster.x[1].end(), 4.0F);
  const auto slope = [](Rank, Round, std::span<const float> x, std::span<float> g) {
    std::copy(x.begin(), x.end(), g.begin());
  };
  REQUIRE(cluster.driver.run(1, slope).ok());
  CHECK(cluster.x[0][0] == 2.0F);
  CHECK(cluster.x[1][0] == 2.0F - 0.05F * 4.0F);
}

TEST_CASE("staleness is counted, and bounded by a node's degree") {
  constexpr Round kRounds = 200;
  Cluster cluster(options_for("star"));
  REQUIRE(cluster.driver.run(kRounds, Quadratic(8, kDimension, 5)).ok());
  std::uint64_t total = 0;
  for (std::size_t rank = 0; rank < 8; ++rank) {
    const AlgorithmCounters counters = cluster.driver.node(rank).counters();
    total += counters.staleness;
    CHECK(counters.most_stale <= (rank == 0 ? 8 : 2));
    CHECK(counters.staleness <= kRounds * counters.most_stale);
  }
  CHECK(total == 2 * 8 * kRounds);  // eight pairings a round, of two nodes each
  CHECK(cluster.driver.node(0).counters().staleness == 8 * kRounds);
  std::uint64_t frames = 0;
  for (const auto& [edge, traffic] : cluster.driver.traffic()) {
    frames += traffic.frames;
    CHECK(traffic.bytes == traffic.frames * (64 + 4 * kDimension));
  }
  CHECK(frames == total);
}

TEST_CASE("AD-PSGD ends near D-PSGD") {
  const Quadratic task(8, kDimension, 5, 0.1);
  Cluster pairs(options_for("ring"));
  auto options = options_for("ring");
  options.algorithm = "dpsgd";
  Cluster all(options);
  REQUIRE(pairs.driver.run(1500, task).ok());
  REQUIRE(all.driver.run(1500, task).ok());
  CHECK(task.excess(pairs.mean()) < 2 * task.excess(all.mean()) + 1e-3);
}

TEST_CASE("a slow node holds up its partners and theirs, and nobody waits for a third") {
  constexpr Round kRounds = 6;
  for (const std::string topology : {"ring", "complete", "torus:3x6"}) {
    CAPTURE(topology);
    const auto options = options_for(topology, 18);
    const Quadratic task(18, kDimension, 5);
    constexpr std::size_t kSlow = 4;
    Cluster cluster(options);
    Race race(cluster);
    race.run(kRounds, task, kSlow);
    const auto expected = reachable(options, kRounds, kSlow);
    bool somebody_ahead = false;
    for (std::size_t rank = 0; rank < 18; ++rank) {
      CAPTURE(rank);
      CHECK(race.pairings(rank) == expected[rank]);
      somebody_ahead = somebody_ahead || cluster.driver.node(rank).round() > 1;
      // A node that waits, waits for one that has not come to this pairing, and waits itself, or is
      // slow.
      const auto awaited = static_cast<std::size_t>(race.awaited(rank));
      CHECK((awaited == rank || awaited == kSlow ||
             race.awaited(awaited) != static_cast<Rank>(awaited)));
    }
    CHECK(cluster.driver.node(kSlow).round() == 0);
    CHECK(somebody_ahead);

    // When it comes back, all end with the bits of lock step.
    race.run(kRounds, task, 18);
    Cluster lockstep(options);
    REQUIRE(lockstep.driver.run(kRounds, task).ok());
    CHECK(cluster.x == lockstep.x);
  }
}

}  // namespace sotto::test::ad_psgd_test

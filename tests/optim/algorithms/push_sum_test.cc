// Push-sum: mass is conserved whatever is compressed, ω mends what a directed graph distorts, and
// no ω on the wire is taken unseen.
#include <sotto/optim/algorithms/push_sum.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/optim/wrappers/forwarding_algorithm.h>

#include "optim/cluster.h"
#include "optim/other_frames.h"
#include "optim/uneven.h"

namespace sotto::test::push_sum_test {

namespace {

enum class Sums { columns, rows };

/// A cycle with random further arcs and random weights; `varying` gives each round half the arcs.
/// Columns (what a node gives) or rows (what it hears) sum to 1.
std::shared_ptr<const Topology> random_directed(int nodes, Sums sums, bool varying = false) {
  RandomStream random({.seed = 21, .purpose = Purpose::test});
  std::vector<std::vector<WeightedEdge>> rounds(varying ? 2 : 1);
  std::vector<std::vector<double>> self;
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    std::vector<double> total(static_cast<std::size_t>(nodes));
    std::vector<double> own(total.size());
    const auto owner = [&](const WeightedEdge& edge) {
      return static_cast<std::size_t>(sums == Sums::columns ? edge.from : edge.to);
    };
    for (std::size_t i = 0; i < own.size(); ++i) {
      total[i] = own[i] = 0.2 + random.uniform();
    }
    for (Rank from = 0; from < nodes; ++from) {
      for (Rank to = 0; to < nodes; ++to) {
        const bool on_cycle = to == (from + 1) % nodes;
        const bool chosen = on_cycle || random.uniform() < 0.1;
        const bool due = !varying || static_cast<std::size_t>(from % 2) == k;
        if (from != to && chosen && due) {
          rounds[k].push_back({from, to, 0.2 + random.uniform()});
          total[owner(rounds[k].back())] += rounds[k].back().weight;
        }
      }
    }
    for (WeightedEdge& edge : rounds[k]) {
      edge.weight /= total[owner(edge)];
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i] /= total[i];
    }
    self.push_back(own);
  }
  return std::make_shared<const Topology>("random-directed", nodes, std::move(rounds),
                                          std::move(self));
}

double total_mass(const Cluster& cluster) {
  double total = 0;
  for (std::size_t rank = 0; rank < cluster.x.size(); ++rank) {
    total += cluster.node<PushSum>(rank).mass();
  }
  return total;
}

/// Σ_i x_i
std::vector<double> total_model(const Cluster& cluster) {
  std::vector<double> total(cluster.x[0].size());
  for (std::size_t rank = 0; rank < cluster.x.size(); ++rank) {
    const auto x = cluster.node<PushSum>(rank).biased();
    std::transform(x.begin(), x.end(), total.begin(), total.begin(),
                   [](float value, double sum) { return sum + static_cast<double>(value); });
  }
  return total;
}

/// Gradients that do not depend on the model, so that the sum of all steps is known.
void drift(Rank rank, Round round, std::span<const float> /*x*/, std::span<float> g) {
  for (std::size_t k = 0; k < g.size(); ++k) {
    const auto bits = (static_cast<std::size_t>(rank) * 7 + round * 13 + k * 5) % 16;
    g[k] = static_cast<float>(bits) / 8 - 1;
  }
}

/// Runs `rounds` of drift and checks both sums against what they must be.
void check_conserved(Cluster& cluster, double rate, Round rounds, double tolerance) {
  const auto nodes = cluster.x.size();
  const auto dimension = cluster.x[0].size();
  auto expected = total_model(cluster);
  std::vector<float> g(dimension);
  for (Round t = 0; t < rounds; ++t) {
    for (std::size_t i = 0; i < nodes; ++i) {
      drift(static_cast<Rank>(i), t, {}, g);
      for (std::size_t k = 0; k < dimension; ++k) {
        expected[k] -= static_cast<double>(static_cast<float>(rate)) * static_cast<double>(g[k]);
      }
    }
  }
  const Status status = cluster.driver.run(rounds, drift);
  CAPTURE(status.message());
  REQUIRE(status.ok());
  CHECK(std::fabs(total_mass(cluster) - static_cast<double>(nodes)) < 1e-12);
  const auto found = total_model(cluster);
  for (std::size_t k = 0; k < dimension; ++k) {
    CHECK(std::fabs(found[k] - expected[k]) < tolerance);
  }
}

double range_of_mass(const Cluster& cluster) {
  double least = INFINITY;
  double most = 0;
  for (std::size_t rank = 0; rank < cluster.x.size(); ++rank) {
    least = std::fmin(least, cluster.node<PushSum>(rank).mass());
    most = std::fmax(most, cluster.node<PushSum>(rank).mass());
  }
  return most / least;
}

ClusterOptions directed_options(std::size_t dimension) {
  return {.algorithm = "pushsum",
          .compressor = "none",
          .nodes = 32,
          .dimension = dimension,
          .step = {.learning_rate = 0.2, .schedule = parse_schedule("step:600:0.3", 5400)},
          .initial_scale = 0};
}

}  // namespace

TEST_CASE("on random directed graphs push-sum finds the optimum where averaging without ω errs") {
  constexpr std::size_t kDimension = 4;
  const Uneven task(32, kDimension, 7);
  for (const bool varying : {false, true}) {
    CAPTURE(varying);
    Cluster push_sum(directed_options(kDimension), random_directed(32, Sums::columns, varying));
    REQUIRE(push_sum.driver.run(5400, task).ok());
    CHECK(range_of_mass(push_sum) > 2);
    const double right = task.worst_excess(push_sum.x);
    CAPTURE(right);
    CHECK(right < 1e-6);

    auto options = directed_options(kDimension);
    options.algorithm = "dpsgd";
    options.allow_contract_violation = true;
    Cluster averaging(options, random_directed(32, Sums::rows, varying));
    REQUIRE(averaging.driver.run(5400, task).ok());
    const double wrong = task.worst_excess(averaging.x);
    CAPTURE(wrong);
    CHECK(wrong > 1e-3);
  }
}

TEST_CASE("without gradients the ratios agree on the mean, on directed and on changing graphs") {
  for (const bool varying : {false, true}) {
    CAPTURE(varying);
    ClusterOptions options{.algorithm = "pushsum", .nodes = 11, .step = {.learning_rate = 0}};
    Cluster cluster(options, random_directed(11, Sums::columns, varying));
    const auto expected = cluster.mean();  // all start from one model, and must stay there
    REQUIRE(cluster.driver.run(300, drift).ok());
    CHECK(range_of_mass(cluster) > 1.2);
    for (const auto& model : cluster.x) {
      for (std::size_t k = 0; k < model.size(); ++k) {
        CHECK(std::fabs(static_cast<double>(model[k]) - expected[k]) < 1e-5);
      }
    }
  }
}

TEST_CASE("mass is conserved over long runs, on static and on changing graphs") {
  for (const bool varying : {false, true}) {
    CAPTURE(varying);
    ClusterOptions options{
        .algorithm = "pushsum", .nodes = 13, .dimension = 5, .step = {.learning_rate = 0x1p-7}};
    Cluster cluster(options, random_directed(13, Sums::columns, varying));
    // Models of size 10 round to 2^-21, in 13 × 20000 updates that need not cancel.
    check_conserved(cluster, 0x1p-7, 20000, 2e-2);
  }
}

TEST_CASE("mass is conserved whatever the compressor, on every kind of graph") {
  constexpr std::size_t kDimension = 130;
  for (const CompressorInfo& family : compressors()) {
    const auto compressor = make_compressor(family.example, ContractKind::contraction);
    if (!compressor->contract(kDimension).meets(ContractKind::contraction)) {
      continue;
    }
    CAPTURE(family.name);
    ClusterOptions options{.algorithm = "pushsum",
                           .compressor = compressor->spec(),
                           .nodes = 9,
                           .dimension = kDimension,
                           .step = {.learning_rate = 0x1p-7}};
    for (const auto& topology :
         {random_directed(9, Sums::columns), random_directed(9, Sums::columns, true),
          make_topology("erdos:0.4", 9), make_topology("one-peer-exponential", 9),
          make_topology("star", 9, {.weighting = Weighting::shares})}) {
      CAPTURE(topology->name());
      Cluster cluster(options, topology);
      check_conserved(cluster, 0x1p-7, 100, 2e-3);
    }
  }
}

TEST_CASE("on a doubly stochastic graph ω stays exactly 1") {
  for (const char* graph : {"ring", "exponential", "one-peer-exponential", "grid:2x4"}) {
    CAPTURE(graph);
    Cluster cluster({.algorithm = "pushsum", .topology = graph});
    REQUIRE(cluster.driver.run(50, Quadratic(8, 64, 3)).ok());
    for (std::size_t rank = 0; rank < 8; ++rank) {
      CHECK(cluster.node<PushSum>(rank).mass() == 1);
      CHECK(same_bits(cluster.node<PushSum>(rank).biased(), cluster.x[rank]));
    }
  }
}

TEST_CASE("compressed push-sum brings the mean model to the optimum on a directed graph") {
  // Measured, not proven: the mean's excess is 6.6e-4 without compression and 2.6e-2 at worst.
  const Uneven task(8, 64, 7);
  const auto topology = random_directed(8, Sums::columns);
  for (const std::string spec : {"none", "quant:8", "quant:4", "sign", "topk:0.1"}) {
    CAPTURE(spec);
    Cluster cluster({.algorithm = "pushsum",
                     .compressor = spec,
                     .step = {.learning_rate = 0.02},
                     .initial_scale = 0},
                    topology);
    const double before = task.excess(cluster.mean());
    REQUIRE(cluster.driver.run(2000, task).ok());
    auto mean = total_model(cluster);
    for (double& value : mean) {
      value /= 8;
    }
    const double after = task.excess(mean);
    CAPTURE(before);
    CAPTURE(after);
    CHECK(after < before / 300);
    CHECK(task.worst_excess(cluster.x) < before / 2);
  }
}

TEST_CASE("push-sum runs on directed graphs at every number of nodes and parameters") {
  for (std::size_t nodes = 1; nodes <= 17; ++nodes) {
    for (const std::size_t dimension : {0U, 1U, 127U, 5003U}) {
      CAPTURE(nodes);
      CAPTURE(dimension);
      Cluster cluster({.algorithm = "pushsum",
                       .compressor = "quant:8",
                       .topology = "exponential",
                       .nodes = nodes,
                       .dimension = dimension});
      const Status status = cluster.driver.run(3, Quadratic(nodes, dimension, 5));
      CAPTURE(status.message());
      REQUIRE(status.ok());
      CHECK(total_mass(cluster) == doctest::Approx(static_cast<double>(nodes)).epsilon(1e-14));
    }
  }
}

TEST_CASE(
    "bad input: weights: NaN, Inf, negative, 0, -0, denormal, 1e308: refused before they are "
    "used") {
  struct Forgery {
    double share;
    double mass;
    Fault fault;
  };
  /// Shows every forgery to its algorithm before the right frame.
  class Forged final : public ForwardingAlgorithm {
   public:
    using ForwardingAlgorithm::ForwardingAlgorithm;
    Status complete(const Exchange& exchange) override {
      OtherFrames frames(exchange);
      for (std::size_t edge = 0; edge < frames.count(); ++edge) {
        forge(frames, edge);
        frames.show_right(edge);
      }
      return inner().complete(frames.exchange());
    }

   private:
    void forge(OtherFrames& frames, std::size_t edge) {
      constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
      constexpr double kInf = std::numeric_limits<double>::infinity();
      for (const Forgery& forged : {
               Forgery{0.5, kNan, Fault::non_finite},
               Forgery{0.5, kInf, Fault::non_finite},
               Forgery{0.5, -kInf, Fault::non_finite},
               Forgery{0.5, 0, Fault::malformed},
               Forgery{0.5, -0.0, Fault::malformed},
               Forgery{0.5, 1e308, Fault::malformed},
               Forgery{0.5, std::numeric_limits<double>::max(), Fault::malformed},
               Forgery{0.5, -1, Fault::malformed},
               Forgery{0.5, std::numeric_limits<double>::denorm_min(), Fault::malformed},
               Forgery{0.5, 1e-30, Fault::malformed},
               Forgery{0.5, 5.1, Fault::malformed},  // there are 5 nodes
               Forgery{kNan, 1, Fault::non_finite},
               Forgery{kInf, 1, Fault::non_finite},
               Forgery{0, 1, Fault::malformed},
               Forgery{-0.0, 1, Fault::malformed},
               Forgery{std::numeric_limits<double>::denorm_min(), 1, Fault::malformed},
               Forgery{1e308, 1, Fault::malformed},
               Forgery{-0.5, 1, Fault::malformed},
               Forgery{1.01, 1, Fault::malformed},
           }) {
        Bytes bad = frames.right(edge);
        ByteWriter payload{std::span(bad).subspan(kFrameHeaderBytes)};
        payload.write(forged.share);
        payload.write(forged.mass);
        seal_frame(parse_frame(frames.right(edge))->header, bad);
        frames.show(edge, bad);
        const Status status = inner().complete(frames.exchange());
        CAPTURE(status.message());
        CHECK(status.fault() == forged.fault);
        CHECK(status.message().find("frame from node " + std::to_string(frames.from(edge))) !=
              std::string::npos);
      }
    }
  };
  const ClusterOptions options{.algorithm = "pushsum", .nodes = 5};
  const auto topology = random_directed(5, Sums::columns);
  Cluster clean(options, topology);
  Cluster forged(options, topology,
                 [](auto inner) { return std::make_unique<Forged>(std::move(inner)); });
  const Quadratic task(5, 64, 3);
  REQUIRE(clean.driver.run(5, task).ok());
  REQUIRE(forged.driver.run(5, task).ok());
  CHECK(clean.x == forged.x);
}

TEST_CASE("push-sum saved in mid-run on a directed graph continues to the bit") {
  const ClusterOptions options{
      .algorithm = "pushsum", .compressor = "topk:0.1", .nodes = 7, .dimension = 33};
  const auto topology = random_directed(7, Sums::columns);
  const Quadratic task(7, 33, 3, 0.2);
  Cluster whole(options, topology);
  REQUIRE(whole.driver.run(40, task).ok());
  Cluster first(options, topology);
  REQUIRE(first.driver.run(23, task).ok());
  Cluster second(options, topology);
  second.x = first.x;
  for (std::size_t rank = 0; rank < 7; ++rank) {
    ByteBuffer saved;
    first.driver.node(rank).save(saved);
    ByteReader in(saved.bytes());
    REQUIRE(second.driver.node(rank).load(in).ok());
    CHECK(in.finished());
  }
  REQUIRE(second.driver.run(17, task).ok());
  CHECK(second.x == whole.x);
  for (std::size_t rank = 0; rank < 7; ++rank) {
    CHECK(second.node<PushSum>(rank).mass() == whole.node<PushSum>(rank).mass());
  }
}

TEST_CASE("shares that do not sum to 1 are refused, and the message says how they would") {
  std::vector<float> x(64);
  const ClusterOptions options{.algorithm = "pushsum", .nodes = 5};
  const auto star = make_topology("star", 5, {.weighting = Weighting::uniform});
  try {
    make_algorithm("pushsum", node_setup(options, 0, x, star));
    FAIL("it was taken");
  } catch (const Error& error) {
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(what.find("columns do not sum to 1") != std::string::npos);
    CHECK(what.find("weighting = shares") != std::string::npos);
  }
  std::vector<std::string> warnings;
  make_algorithm(
      "pushsum",
      node_setup(options, 0, x, make_topology("star", 5, {.weighting = Weighting::shares})),
      &warnings);
  CHECK(warnings.empty());
}

TEST_CASE("nodes that differ come to their mean on a directed graph") {
  std::vector<std::vector<float>> x(6);
  const auto topology = random_directed(6, Sums::columns);
  LockstepDriver driver;
  for (std::size_t rank = 0; rank < 6; ++rank) {
    x[rank].assign(3, static_cast<float>(rank));
    driver.add(make_algorithm(
        "pushsum", node_setup({.algorithm = "pushsum", .nodes = 6, .step = {.learning_rate = 0}},
                              rank, x[rank], topology)));
  }
  REQUIRE(driver.run(200, drift).ok());
  for (const auto& model : x) {
    for (const float value : model) {
      CHECK(static_cast<double>(value) == doctest::Approx(2.5).epsilon(1e-6));
    }
  }
}

TEST_CASE("a node that leaves takes its share of the mass with it, and no more") {
  // Node 3 is told and tells for 20 rounds; then the others' shares are split without it.
  constexpr int kNodes = 8;
  constexpr Rank kLeaver = 3;
  constexpr Round kLeaves = 20;
  constexpr Round kRounds = 300;
  const auto whole = random_directed(kNodes, Sums::columns);
  std::vector<std::vector<WeightedEdge>> rounds(kRounds);
  std::vector<std::vector<double>> self(kRounds, std::vector<double>(kNodes, 1));
  for (Round t = 0; t < kRounds; ++t) {
    for (Rank from = 0; from < kNodes; ++from) {
      for (const Edge& edge : whole->out_edges(from, 0)) {
        // Past the leaver the circle of trust is closed again.
        const bool gone = t >= kLeaves && (from == kLeaver || edge.peer == kLeaver);
        const Rank to = gone && from == kLeaver - 1 ? kLeaver + 1 : edge.peer;
        const bool doubled =
            to != edge.peer &&
            std::any_of(whole->out_edges(from, 0).begin(), whole->out_edges(from, 0).end(),
                        [&](const Edge& other) { return other.peer == to; });
        if ((!gone || to != edge.peer) && !doubled) {
          const auto share = static_cast<double>(edge.weight);
          rounds[t].push_back({from, to, share});
          self[t][static_cast<std::size_t>(from)] -= share;
        }
      }
    }
  }
  const auto graph = std::make_shared<const Topology>("leaving", kNodes, rounds, self);
  Cluster cluster(
      {.algorithm = "pushsum", .nodes = kNodes, .dimension = 5, .step = {.learning_rate = 0x1p-7}},
      graph);
  check_conserved(cluster, 0x1p-7, kLeaves, 1e-4);
  const double taken = cluster.node<PushSum>(kLeaver).mass();
  CHECK(taken != doctest::Approx(1));
  check_conserved(cluster, 0x1p-7, kRounds - kLeaves, 1e-3);
  CHECK(cluster.node<PushSum>(kLeaver).mass() == taken);
  CHECK(total_mass(cluster) - taken == doctest::Approx(kNodes - taken).epsilon(1e-14));
}

}  // namespace sotto::test::push_sum_test

// Gradients that do not wait for the neighbours: the algorithm inside does what it always does.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/workers.h>
#include <sotto/optim/algorithms/push_sum.h>
#include <sotto/optim/wrappers/bucketed.h>
#include <sotto/optim/wrappers/delayed_gradient.h>

#include "optim/cluster.h"

namespace sotto::test::delayed_gradient_test {

namespace {

constexpr std::size_t kNodes = 5;

std::vector<std::string_view> delayable() {
  std::vector<std::string_view> names;
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.takes_delayed_gradients()) {
      names.push_back(info.name);
    }
  }
  return names;
}

/// Each whole, and cut.
std::vector<std::pair<std::string_view, std::uint32_t>> names_and_buckets() {
  std::vector<std::pair<std::string_view, std::uint32_t>> all;
  for (const std::string_view name : delayable()) {
    all.emplace_back(name, 1);
    all.emplace_back(name, 3);
  }
  return all;
}

/// What `options` are refused for; empty when they are taken.
std::string refusal(const ClusterOptions& options) {
  std::vector<float> x(options.dimension);
  try {
    make_algorithm(spec_of(options), node_setup(options, 0, x, cluster_topology(options)));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

constexpr float kRate = 0.05F;
constexpr float kMomentum = 0.5F;
constexpr float kDecay = 0.1F;
const StepRuleOptions kStep{.learning_rate = kRate, .momentum = kMomentum, .weight_decay = kDecay};

/// A fixed one; one that changes, for who can; and for push-sum one whose masses are uneven.
std::vector<std::shared_ptr<const Topology>> graphs_for(std::string_view name) {
  std::vector<std::shared_ptr<const Topology>> graphs;
  graphs.emplace_back(make_topology("ring", kNodes));
  if (algorithm_info(name).takes_changing_graphs()) {
    graphs.emplace_back(make_topology("base:2", kNodes));
  }
  if (name == "pushsum") {
    graphs.emplace_back(make_topology("star", kNodes, {.weighting = Weighting::shares}));
  }
  return graphs;
}

/// With a rule that takes for its direction what it is given.
ClusterOptions& taking_directions(ClusterOptions& options) {
  options.step = {.learning_rate = 1};
  return options;
}

/// The mixed model x_t of a node that shows what it was before.
std::vector<float> mixed(const Algorithm& node) {
  if (const auto* delayed = dynamic_cast<const DelayedGradient*>(&node)) {
    const auto x = delayed->inner().parameters();
    return {x.begin(), x.end()};
  }
  std::vector<float> all;
  const auto& cut = dynamic_cast<const Bucketed&>(node);
  for (std::size_t b = 0; b < cut.buckets(); ++b) {
    const auto piece = mixed(cut.bucket(b));
    all.insert(all.end(), piece.begin(), piece.end());
  }
  return all;
}

/// The model of a node after its own step along d, before it is mixed.
std::vector<float> before_mixing(const Algorithm& node, std::span<const float> d) {
  std::vector<float> z;
  if (const auto* cut = dynamic_cast<const Bucketed*>(&node)) {
    for (std::size_t b = 0; b < cut->buckets(); ++b) {
      const Algorithm& bucket = cut->bucket(b);
      const auto piece = before_mixing(bucket, d.subspan(z.size(), bucket.parameters().size()));
      z.insert(z.end(), piece.begin(), piece.end());
    }
    return z;
  }
  const auto* push = dynamic_cast<const PushSum*>(&node);
  const auto x = push != nullptr ? push->biased() : node.parameters();
  const float scale = push != nullptr ? static_cast<float>(1 / push->mass()) : 1;
  for (std::size_t k = 0; k < x.size(); ++k) {
    z.push_back(scale * (x[k] - d[k]));
  }
  return z;
}

/// What a run with delays does, worked out beside one without: gradients are taken at what each
/// node has before it mixes.
struct BeforeMixing {
  BeforeMixing(ClusterOptions options, const std::shared_ptr<const Topology>& topology,
               const Quadratic& of)
      : task(of), plain(taking_directions(options), topology) {
    z = plain.x;
    velocity.assign(z.size(), std::vector<float>(options.dimension));
  }

  Status run(Round rounds) {
    return plain.driver.run(rounds, [&](Rank rank, Round round, auto /*x*/, auto g) {
      const auto node = static_cast<std::size_t>(rank);
      task(rank, round, z[node], g);
      for (std::size_t k = 0; k < g.size(); ++k) {
        float& v = velocity[node][k];
        const float decayed = g[k] + kDecay * z[node][k];
        v = kMomentum * v + decayed;
        g[k] = kRate * v;
      }
      z[node] = before_mixing(plain.driver.node(node), g);
    });
  }

  Quadratic task;
  Cluster plain;
  std::vector<std::vector<float>> z;
  std::vector<std::vector<float>> velocity;
};

}  // namespace

TEST_CASE("a delay is the algorithm itself with gradients from before its nodes mix") {
  constexpr Round kRounds = 30;
  for (const std::string_view name : delayable()) {
    for (const auto& topology : graphs_for(name)) {
      for (const std::uint32_t buckets : {1U, 3U}) {
        for (const Delivery delivery : {Delivery::eager, Delivery::late}) {
          CAPTURE(name);
          CAPTURE(topology->name());
          CAPTURE(buckets);
          ClusterOptions options{.algorithm = std::string(name),
                                 .nodes = kNodes,
                                 .dimension = buckets == 1 ? 33U : 3U * 4096,
                                 .step = kStep,
                                 .buckets = buckets,
                                 .delivery = delivery};
          const Quadratic task(kNodes, options.dimension, 3, 0.2);
          BeforeMixing expected(options, topology, task);
          REQUIRE(expected.run(kRounds).ok());

          options.delayed_gradient = true;
          Cluster delayed(options, topology);
          const Status status = delayed.driver.run(kRounds, task);
          CAPTURE(status.message());
          REQUIRE(status.ok());
          for (std::size_t rank = 0; rank < kNodes; ++rank) {
            const Algorithm& node = delayed.driver.node(rank);
            CHECK(node.round() == kRounds);
            CHECK(same_bits(mixed(node), expected.plain.x[rank]));
            CHECK(same_bits(node.parameters(), expected.z[rank]));
          }
        }
      }
    }
  }
}

TEST_CASE("with exact communication a delay makes D-PSGD of CHOCO-SGD") {
  ClusterOptions options{.algorithm = "choco:eta=1",
                         .compressor = "none",
                         .nodes = kNodes,
                         .dimension = 40,
                         .step = {.learning_rate = 0.2}};
  options.delayed_gradient = true;
  const Quadratic task(kNodes, options.dimension, 7);
  Cluster delayed(options);
  REQUIRE(delayed.driver.run(50, task).ok());
  options.delayed_gradient = false;
  options.algorithm = "dpsgd";
  Cluster dpsgd(options);
  REQUIRE(dpsgd.driver.run(50, task).ok());
  for (std::size_t rank = 0; rank < kNodes; ++rank) {
    for (std::size_t k = 0; k < options.dimension; ++k) {
      CHECK(delayed.x[rank][k] == doctest::Approx(dpsgd.x[rank][k]).epsilon(1e-4));
    }
  }
}

TEST_CASE("an update that overflows with a delay is a fault before it is sent, and the last") {
  for (const std::string_view name : delayable()) {
    for (const std::uint32_t buckets : {1U, 2U}) {
      CAPTURE(name);
      CAPTURE(buckets);
      ClusterOptions options{.algorithm = std::string(name),
                             .nodes = 2,
                             .dimension = 2 * 4096,
                             .step = {.learning_rate = 1},
                             .buckets = buckets,
                             .delayed_gradient = true};
      Cluster cluster(options);
      const auto pull = [](float by) {
        return [=](Rank, Round, std::span<const float>, std::span<float> g) {
          std::fill(g.begin(), g.end(), 0.0F);
          g[5000] = by;
        };
      };
      REQUIRE(cluster.driver.run(1, pull(3e38F)).ok());
      const Status status = cluster.driver.run(1, pull(3e38F));
      CHECK(status.fault() == Fault::non_finite);
      if (buckets == 1) {  // the next is refused, as after an overflow without a delay
        Exchange out;
        Algorithm& node = cluster.driver.node(0);
        REQUIRE(node.accepts_gradient());
        const Status again = node.take_gradient(std::vector<float>(options.dimension));
        CHECK(again.fault() == Fault::non_finite);
        CHECK_FALSE(*node.next_exchange(out));
      }
      for (const auto& x : cluster.x) {
        CHECK(std::all_of(x.begin(), x.end(), [](float value) { return std::isfinite(value); }));
      }
    }
  }
}

TEST_CASE("an overflow within push-sum is final with a delay as well") {
  // x and d are as many times z and its step as the mass, so that x overflows where z does not.
  ClusterOptions options{.algorithm = "pushsum",
                         .nodes = kNodes,
                         .dimension = 8,
                         .step = {.learning_rate = 1},
                         .delayed_gradient = true};
  Cluster cluster(options, make_topology("star", kNodes, {.weighting = Weighting::shares}));
  const auto pull = [](float by) {
    return [=](Rank, Round, std::span<const float>, std::span<float> g) {
      std::fill(g.begin(), g.end(), by);
    };
  };
  REQUIRE(cluster.driver.run(1, pull(-1e38F)).ok());
  Algorithm& hub = cluster.driver.node(0);
  REQUIRE(hub.counters().mass.value() > 1.5);
  hub.begin_round();
  Status status = hub.take_gradient(std::vector<float>(8, -2.5e38F));
  for (int t = 0; t < 3; ++t) {
    CHECK(status.fault() == Fault::non_finite);
    REQUIRE(hub.accepts_gradient());
    status = hub.take_gradient(std::vector<float>(8));
  }
}

TEST_CASE("with a delay the mean model is SGD all the same, whatever C is") {
  constexpr double kStep = 0.3;
  for (const std::string_view name : {"choco", "deepsqueeze"}) {
    CAPTURE(name);
    const ClusterOptions options{.algorithm = std::string(name),
                                 .compressor = "topk:0.1",
                                 .nodes = kNodes,
                                 .dimension = 40,
                                 .step = {.learning_rate = kStep},
                                 .delayed_gradient = true};
    // Gradients are linear with the same h for all nodes: the mean of gradients is the mean's.
    const Quadratic task(kNodes, options.dimension, 7);
    Cluster cluster(options);
    std::vector<double> expected = cluster.mean();
    for (Round round = 0; round < 60; ++round) {
      REQUIRE(cluster.driver.run(1, task).ok());
      task.descend(kStep, expected);
      const std::vector<double> mean = cluster.mean();
      for (std::size_t k = 0; k < mean.size(); ++k) {
        CHECK(mean[k] == doctest::Approx(expected[k]).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE("a delay leaves the mean SGD's learning rates, and differences those of D-PSGD") {
  // Two nodes that mix by halves agree at once, a = 0: the mean's distance shrinks by 1 − γ h, the
  // nodes' difference by a − γ h. Without a delay the latter is gone with each mixing.
  const auto end = [](double rate, bool delayed, float apart) {
    Cluster cluster({.algorithm = "choco",
                     .compressor = "none",
                     .nodes = 2,
                     .dimension = 1,
                     .step = {.learning_rate = rate},
                     .delayed_gradient = delayed});
    const auto bowl = [=](Rank rank, Round, std::span<const float> x, std::span<float> g) {
      g[0] = x[0] - (rank == 0 ? apart : -apart);
    };
    REQUIRE(cluster.driver.run(200, bowl).ok());
    return std::abs(cluster.x[0][0]);
  };
  CHECK(end(1.9, true, 0) < 0.1F);
  CHECK(end(2.1, true, 0) > 10);
  CHECK(end(0.95, true, 0.01F) < 0.1F);
  CHECK(end(1.05, true, 0.01F) > 10);
  CHECK(end(1.05, false, 0.01F) < 0.1F);
}

TEST_CASE("a delayed run, saved in mid-run and loaded, continues to the bit") {
  for (const auto& [name, buckets] : names_and_buckets()) {
    CAPTURE(name);
    CAPTURE(buckets);
    const ClusterOptions options{.algorithm = std::string(name),
                                 .nodes = kNodes,
                                 .dimension = buckets == 1 ? 33U : 3U * 4096,
                                 .step = {.learning_rate = 0.02, .momentum = 0.9},
                                 .buckets = buckets,
                                 .delayed_gradient = true};
    const Quadratic task(kNodes, options.dimension, 3, 0.2);
    Cluster whole(options);
    REQUIRE(whole.driver.run(50, task).ok());
    Cluster first(options);
    REQUIRE(first.driver.run(31, task).ok());
    Cluster second(options);
    second.x = first.x;
    for (std::size_t rank = 0; rank < kNodes; ++rank) {
      ByteBuffer bytes;
      first.driver.node(rank).save(bytes);
      ByteReader in(bytes.bytes());
      REQUIRE(second.driver.node(rank).load(in).ok());
      CHECK(in.finished());
      CHECK(second.driver.node(rank).round() == 31);
      ByteReader cut(bytes.bytes().first(bytes.bytes().size() - 1));
      CHECK_FALSE(Cluster(options).driver.node(rank).load(cut).ok());
    }
    REQUIRE(second.driver.run(19, task).ok());
    CHECK(second.x == whole.x);
  }
}

TEST_CASE("with a delay, a gradient that is not finite changes nothing, and another may be given") {
  for (const std::string_view name : delayable()) {
    CAPTURE(name);
    ClusterOptions options{.algorithm = std::string(name), .nodes = 2, .dimension = 8};
    options.delayed_gradient = true;
    Cluster cluster(options);
    Cluster untroubled(options);
    const Quadratic task(2, options.dimension, 3);
    REQUIRE(cluster.driver.run(3, task).ok());
    REQUIRE(untroubled.driver.run(3, task).ok());
    const auto faulty = [&](Rank rank, Round round, std::span<const float> x, std::span<float> g) {
      task(rank, round, x, g);
      if (rank == 0) {
        g[5] = NAN;
      }
    };
    const auto before = cluster.x;
    CHECK(cluster.driver.run(1, faulty).fault() == Fault::non_finite);
    CHECK(cluster.x == before);
    CHECK(cluster.driver.node(0).round() == 3);
    const auto model = [](const Cluster& of) {
      return of.node<DelayedGradient>(0).inner().parameters();
    };
    CHECK(same_bits(model(cluster), model(untroubled)));
    // Both have begun the round; the gradient that is right does what it would have done.
    Exchange out;
    std::vector<float> gradient(options.dimension);
    task(0, 3, cluster.x[0], gradient);
    Algorithm& twin = untroubled.driver.node(0);
    twin.begin_round();
    std::vector<std::byte> frames[2];
    std::size_t turn = 0;
    for (Algorithm* node : {&cluster.driver.node(0), &twin}) {
      REQUIRE(node->take_gradient(gradient).ok());
      REQUIRE(*node->next_exchange(out));
      const auto frame = out.sends.front().frame;
      frames[turn++].assign(frame.begin(), frame.end());
    }
    CHECK(frames[0] == frames[1]);
  }
}

TEST_CASE("a delay is refused where there is nothing to hide, or theory forbids it") {
  const auto refused = [](ClusterOptions options) {
    options.delayed_gradient = true;
    return refusal(options);
  };
  const auto says = [](const std::string& text, std::string_view what) {
    return text.find("delayed_gradient: 'true' is refused: ") == 0 &&
           text.find(what) != std::string::npos;
  };
  CHECK(says(refused({.algorithm = "dcd"}), "dcd hide behind gradients that are not delayed"));
  CHECK(says(refused({.algorithm = "d2"}), "use deepsqueeze, choco or pushsum"));
  CHECK(says(refused({.algorithm = "choco", .communication_interval = 4}), "local steps"));
  CHECK(refused({.algorithm = "choco"}).empty());
}

TEST_CASE("threads that share the encoding write the same half step") {
  constexpr std::size_t kLong = 300'000;  // what is shared out at all
  const auto end = [&](std::string_view name, int threads) {
    const ClusterOptions options{.algorithm = std::string(name),
                                 .compressor = "sign",
                                 .nodes = 2,
                                 .dimension = kLong,
                                 .step = {.learning_rate = 0.1},
                                 .delayed_gradient = true};
    const auto graph = cluster_topology(options);
    std::vector<std::vector<float>> x(2, std::vector<float>(kLong, 1));
    LockstepDriver driver(Delivery::eager);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      AlgorithmSetup setup = node_setup(options, rank, x[rank], graph);
      if (threads > 1) {
        setup.compressor->set_workers(std::make_shared<Workers>(threads));
      }
      driver.add(make_algorithm(name, std::move(setup)));
    }
    const Status status = driver.run(3, Quadratic(2, kLong, 9));
    CHECK_MESSAGE(status.ok(), status.message());
    return std::vector(driver.node(0).parameters().begin(), driver.node(0).parameters().end());
  };
  for (const std::string_view name : delayable()) {
    CAPTURE(name);
    CHECK(end(name, 3) == end(name, 1));
  }
}

}  // namespace sotto::test::delayed_gradient_test

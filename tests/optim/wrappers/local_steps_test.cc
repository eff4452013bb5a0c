// Local steps between exchanges, around every algorithm.
#include <sotto/optim/wrappers/local_steps.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "optim/cluster.h"
#include "optim/saved_state.h"

namespace sotto::test::local_steps_test {

namespace {

constexpr std::size_t kNodes = 5;
constexpr std::size_t kDimension = 33;

ClusterOptions options_for(std::string_view algorithm, Round interval) {
  // LAMB's rate is a fraction of the model's norm a step.
  const bool scaled = algorithm_info(algorithm).step_rules.only == "lamb";
  return {.algorithm = std::string(algorithm),
          .nodes = kNodes,
          .dimension = kDimension,
          .step = {.learning_rate = scaled ? 0.005 : 0.02},
          .communication_interval = interval};
}

Status run(Cluster& cluster, Round rounds, double noise = 0) {
  return cluster.driver.run(rounds, Quadratic(kNodes, kDimension, 3, noise));
}

double largest_difference(const std::vector<float>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    largest = std::fmax(largest, std::fabs(static_cast<double>(a[k]) - b[k]));
  }
  return largest;
}

/// f_i(x) = ½ ‖x − c_i‖² with c_i = rank + 1, in which all coordinates are alike.
void pull_to_rank(Rank rank, Round /*round*/, std::span<const float> x, std::span<float> g) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    g[k] = x[k] - static_cast<float>(rank + 1);
  }
}

}  // namespace

TEST_CASE("every algorithm takes local steps, in any order of delivery, whenever the run ends") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    for (const Round rounds : {1U, 2U, 3U, 20U}) {
      CAPTURE(rounds);
      auto options = options_for(info.name, 3);
      Cluster eager(options);
      options.delivery = Delivery::late;
      Cluster late(options);
      const auto start = eager.x;
      const Status status = run(eager, rounds, 0.1);
      CAPTURE(status.message());
      REQUIRE(status.ok());
      REQUIRE(run(late, rounds, 0.1).ok());
      CHECK(eager.x == late.x);
      CHECK(eager.x != start);
      for (std::size_t rank = 0; rank < kNodes; ++rank) {
        CHECK(eager.driver.node(rank).round() == rounds);
        CHECK(eager.driver.node(rank).idle());
        CHECK(late.driver.node(rank).idle());
      }
    }
  }
}

TEST_CASE("every algorithm converges with local steps") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    auto options = options_for(info.name, 4);
    options.freeze_step = 50;
    Cluster cluster(options);
    const Quadratic task(kNodes, kDimension, 3);
    const double before = task.excess(cluster.mean());
    // A frozen variance is that of noise: without any, LAMB's frozen ratios are of no size at all.
    REQUIRE(run(cluster, 800, info.step_rules.only == "lamb" ? 0.3 : 0).ok());
    CHECK(task.excess(cluster.mean()) < before / 10);
  }
}

TEST_CASE("with H = 1 the movement is the gradient of the plain algorithm") {
  for (const AlgorithmInfo& info : algorithms()) {
    if (!info.step_rules.only.empty()) {
      continue;  // its own step rule would make another algorithm of it
    }
    CAPTURE(info.name);
    Cluster plain(options_for(info.name, 1));
    auto options = options_for(info.name, 1);
    options.outer_step = StepRuleOptions{.learning_rate = 1};
    Cluster wrapped(options);
    REQUIRE(run(plain, 30).ok());
    REQUIRE(run(wrapped, 30).ok());
    CHECK(plain.driver.traffic().size() == wrapped.driver.traffic().size());
    const bool direction_first = info.name == "dpsgd" || info.name == "dcd" || info.name == "ecd" ||
                                 info.name == "deepsqueeze" || info.name == "choco" ||
                                 info.name == "pushsum" || info.name == "d2";
    if (direction_first) {
      CHECK(plain.x == wrapped.x);  // others scale by γ before or after they round
    } else if (info.contract == ContractKind::exact) {
      for (std::size_t i = 0; i < kNodes; ++i) {
        CHECK(largest_difference(plain.x[i], {wrapped.x[i].begin(), wrapped.x[i].end()}) < 1e-5);
      }
    }
  }
}

TEST_CASE("H = 1 without an outer rule is the plain algorithm itself") {
  Cluster cluster(options_for("dpsgd", 1));
  CHECK(dynamic_cast<const LocalSteps*>(&cluster.driver.node(0)) == nullptr);
  Cluster local(options_for("dpsgd", 2));
  CHECK(dynamic_cast<const LocalSteps*>(&local.driver.node(0)) != nullptr);
}

TEST_CASE("local SGD: H steps at each node, then the mean of the models") {
  constexpr Round kInterval = 4;
  Cluster cluster(options_for("allreduce", kInterval));
  const Quadratic task(kNodes, kDimension, 3);
  std::vector<double> mean(cluster.x[0].begin(), cluster.x[0].end());
  for (int exchange = 0; exchange < 6; ++exchange) {
    std::vector<double> next(kDimension);
    for (std::size_t i = 0; i < kNodes; ++i) {
      std::vector<float> at(mean.begin(), mean.end());
      std::vector<double> x = mean;
      std::vector<float> g(kDimension);
      for (Round step = 0; step < kInterval; ++step) {
        at.assign(x.begin(), x.end());
        task(static_cast<Rank>(i), 0, at, g);
        for (std::size_t k = 0; k < kDimension; ++k) {
          x[k] -= 0.02 * static_cast<double>(g[k]);
        }
      }
      for (std::size_t k = 0; k < kDimension; ++k) {
        next[k] += x[k] / kNodes;
      }
    }
    mean = next;
    REQUIRE(run(cluster, kInterval).ok());
    for (const auto& model : cluster.x) {
      CHECK(largest_difference(model, mean) < 2e-6);
      CHECK(model == cluster.x[0]);
    }
  }
}

TEST_CASE("between exchanges a node's model is its own, and no longer its neighbours'") {
  Cluster cluster(options_for("allreduce", 4));
  REQUIRE(run(cluster, 6).ok());
  CHECK(cluster.x[0] != cluster.x[1]);
  REQUIRE(run(cluster, 2).ok());
  CHECK(cluster.x[0] == cluster.x[1]);
}

TEST_CASE("DiLoCo: the mean movement goes through Nesterov's momentum") {
  // x ← x − γ' (Δ̄ + μ v), v ← μ v + Δ̄; on ½ ‖x − c_i‖² a node moves by (1 − (1 − γ)^H)(x − c_i).
  constexpr Round kInterval = 5;
  constexpr double kRate = 0.1;
  constexpr double kOuterRate = 0.7;
  constexpr double kMomentum = 0.9;
  auto options = options_for("allreduce", kInterval);
  options.step.learning_rate = kRate;
  options.outer_step =
      StepRuleOptions{.learning_rate = kOuterRate, .momentum = kMomentum, .nesterov = true};
  Cluster cluster(options);
  double x = static_cast<double>(cluster.x[0][0]);
  double velocity = 0;
  const double pull = 1 - std::pow(1 - kRate, kInterval);
  for (int exchange = 0; exchange < 20; ++exchange) {
    const double movement = pull * (x - 3);  // the c_i are 1 … 5
    velocity = kMomentum * velocity + movement;
    x -= kOuterRate * (movement + kMomentum * velocity);
    REQUIRE(cluster.driver.run(kInterval, pull_to_rank).ok());
    CHECK(static_cast<double>(cluster.x[2][0]) == doctest::Approx(x).epsilon(1e-5));
  }
}

TEST_CASE("bytes and frames drop by H exactly") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    auto options = options_for(info.name, 1);
    if (info.contract == ContractKind::contraction) {
      options.compressor = fitting("sign", info);  // all of whose encodings have one length
    }
    Cluster plain(options);
    options.communication_interval = 4;
    Cluster local(options);
    REQUIRE(run(plain, 10).ok());
    REQUIRE(run(local, 40).ok());
    REQUIRE(plain.driver.traffic().size() == local.driver.traffic().size());
    for (const auto& [edge, traffic] : plain.driver.traffic()) {
      CHECK(local.driver.traffic().at(edge).frames == traffic.frames);
      CHECK(local.driver.traffic().at(edge).bytes == traffic.bytes);
    }
  }
}

TEST_CASE("the exchange of D-PSGD hides behind H gradients, that of DCD behind the next H") {
  const std::vector<float> gradient(kDimension, 0.1F);
  for (const std::string algorithm : {"dpsgd", "dcd"}) {
    CAPTURE(algorithm);
    Cluster cluster(options_for(algorithm, 3));
    Algorithm& node = cluster.driver.node(0);
    Exchange exchange;
    const auto posts = [&] { return *node.next_exchange(exchange); };
    node.begin_round();
    CHECK(posts() == (algorithm == "dpsgd"));
    if (algorithm == "dcd") {
      for (int round = 0; round < 3; ++round) {
        REQUIRE(node.accepts_gradient());
        REQUIRE(node.take_gradient(gradient).ok());
        CHECK(posts() == (round == 2));
        node.begin_round();
        CHECK_FALSE(posts());
      }
    }
    // Two gradients are taken while the exchange is under way, the third one waits for it.
    for (int round = 0; round < 2; ++round) {
      REQUIRE(node.accepts_gradient());
      REQUIRE(node.take_gradient(gradient).ok());
      CHECK_FALSE(posts());
      CHECK(node.parameters_ready());
      CHECK_FALSE(node.idle());
      node.begin_round();
      CHECK_FALSE(posts());
    }
    CHECK_FALSE(node.accepts_gradient());
  }
}

TEST_CASE("a run saved anywhere in an interval and loaded continues to the bit") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const Round stop : {21U, 22U, 23U}) {
      CAPTURE(info.name);
      CAPTURE(stop);
      auto options = options_for(info.name, 3);
      options.step = {.rule = "adam", .learning_rate = 0.01};
      if (info.step_rules.only.empty()) {
        options.outer_step = {.learning_rate = 0.5, .momentum = 0.5};
      }
      Cluster whole(options);
      REQUIRE(run(whole, 40, 0.2).ok());
      Cluster first(options);
      REQUIRE(run(first, stop, 0.2).ok());
      Cluster second(options);
      second.x = first.x;
      for (std::size_t rank = 0; rank < kNodes; ++rank) {
        const auto bytes = saved(first.driver.node(rank));
        ByteReader in(bytes);
        const Status status = second.driver.node(rank).load(in);
        CAPTURE(status.message());
        REQUIRE(status.ok());
        CHECK(in.finished());
        CHECK(second.driver.node(rank).round() == stop);
        CHECK(saved(second.driver.node(rank)) == bytes);
      }
      REQUIRE(run(second, 40 - stop, 0.2).ok());
      CHECK(second.x == whole.x);
    }
  }
}

TEST_CASE("a checkpoint that is damaged or of another interval is refused") {
  const auto options = options_for("dcd", 3);
  Cluster cluster(options);
  REQUIRE(run(cluster, 4).ok());
  const auto bytes = saved(cluster.driver.node(0));
  const auto message = [](const ClusterOptions& other, std::span<const std::byte> state) {
    Cluster fresh(other);
    ByteReader in(state);
    return fresh.driver.node(0).load(in).message();
  };
  CHECK(message(options, bytes).empty());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(message(options, std::span(bytes).first(size)).empty());
  }
  CHECK(message(options_for("dcd", 4), bytes).find("every 3 rounds where every 4") !=
        std::string::npos);
  CHECK_FALSE(message(options_for("dcd", 1), bytes).empty());
  RandomStream random({.seed = 8, .purpose = Purpose::test});
  for (int i = 0; i < 300; ++i) {
    auto damaged = bytes;
    const auto bit = random.below(8 * damaged.size());
    damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    Cluster fresh(options);
    ByteReader in(damaged);
    (void)fresh.driver.node(0).load(in);  // refused or loaded, and never more than that
  }
}

TEST_CASE("a gradient or a step that is not finite is named by node and round, and not kept") {
  const auto faulty = [](Round when, float value) {
    return [=](Rank rank, Round round, std::span<const float>, std::span<float> g) {
      std::fill(g.begin(), g.end(), 0.1F);
      if (rank == 2 && round == when) {
        g[3] = value;
      }
    };
  };
  for (const Round when : {6U, 7U, 8U}) {  // the first, a middle and the last of an interval
    CAPTURE(when);
    const std::string place = "node 2, round " + std::to_string(when);
    for (const std::string algorithm : {"dpsgd", "choco", "allreduce"}) {
      CAPTURE(algorithm);
      Cluster nan(options_for(algorithm, 3));
      Status status = nan.driver.run(12, faulty(when, std::nanf("")));
      CHECK(status.fault() == Fault::non_finite);
      CHECK(status.message().find(place + ": the gradient has 1 elements") == 0);

      auto options = options_for(algorithm, 3);
      options.step.learning_rate = 1e3;
      Cluster overflow(options);
      status = overflow.driver.run(12, faulty(when, 3e38F));
      CAPTURE(status.message());
      CHECK(status.fault() == Fault::non_finite);
      CHECK(status.message().find(place + ": the ") == 0);
      for (const auto& model : overflow.x) {
        for (const float value : model) {
          CHECK(std::isfinite(value));
        }
      }
    }
  }
}

TEST_CASE("after a gradient that was refused another one is taken as if nothing had happened") {
  Cluster clean(options_for("dpsgd", 4));
  Cluster hit(options_for("dpsgd", 4));
  std::vector<float> good(kDimension, 0.5F);
  std::vector<float> bad = good;
  bad[7] = std::numeric_limits<float>::infinity();
  for (Cluster* cluster : {&clean, &hit}) {
    Algorithm& node = cluster->driver.node(1);
    Exchange exchange;
    node.begin_round();
    REQUIRE(*node.next_exchange(exchange));
    REQUIRE(node.take_gradient(good).ok());
    node.begin_round();
    if (cluster == &hit) {
      const auto before = hit.x[1];
      CHECK(node.take_gradient(bad).fault() == Fault::non_finite);
      CHECK(hit.x[1] == before);
    }
    REQUIRE(node.take_gradient(good).ok());
  }
  CHECK(hit.x[1] == clean.x[1]);
}

TEST_CASE("wrong settings of local steps are refused, and the message says what would do") {
  const auto refusal = [](const ClusterOptions& options, auto change) -> std::string {
    std::vector<float> x(kDimension);
    auto setup = node_setup(options, 0, x, cluster_topology(options));
    change(setup);
    try {
      (void)make_algorithm(spec_of(options), std::move(setup));
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  };
  using Setup = AlgorithmSetup&;
  CHECK(refusal(options_for("dcd", 1), [](Setup s) {
          s.communication_interval = 0;
        }).find("communication_interval: '0'") != std::string::npos);
  const std::string sgd = refusal(options_for("apmsqueeze", 3),
                                  [](Setup s) { s.outer_step_rule = make_step_rule({}); });
  CHECK(sgd.find("outer_step_rule: 'sgd'") != std::string::npos);
  CHECK(sgd.find("use adam") != std::string::npos);
  CHECK(refusal(options_for("apmsqueeze", 3), [](Setup) {}).empty());
}

}  // namespace sotto::test::local_steps_test

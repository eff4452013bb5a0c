// Parameters whose gradients come after the freeze learn as the others do.
#include <sotto/optim/frozen_adam/late_elements.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/frame.h>
#include <sotto/optim/algorithms/gossip_adam.h>
#include <sotto/optim/wrappers/forwarding_algorithm.h>

#include "optim/cluster.h"
#include "optim/other_frames.h"

namespace sotto::test::late_elements_test {

namespace {

constexpr Round kFreeze = 4;

bool gossips(const AlgorithmInfo& info) { return info.name == "onebit-adam-gossip"; }

/// The first round and node at which each parameter has a gradient.
struct Onsets {
  std::vector<Round> rounds;
  std::vector<Rank> nodes;

  /// A third at once, a third between `freeze` and `freeze` + 20, and a third never; in `nodes`
  /// nodes, at one of them two rounds before the others.
  Onsets(std::size_t dimension, Round freeze, std::size_t nodes_count, unsigned seed)
      : rounds(dimension), nodes(dimension) {
    std::mt19937 random(seed);
    for (std::size_t k = 0; k < dimension; ++k) {
      const auto kind = random() % 3;
      rounds[k] = kind == 0 ? 0 : kind == 1 ? freeze + random() % 20 : Round{1} << 40;
      nodes[k] = static_cast<Rank>(random() % nodes_count);
    }
  }

  GradientFunction of(GradientFunction gradient) const {
    return [*this, gradient = std::move(gradient)](Rank rank, Round round, std::span<const float> x,
                                                   std::span<float> g) {
      gradient(rank, round, x, g);
      for (std::size_t k = 0; k < g.size(); ++k) {
        if (round < rounds[k] + (rounds[k] > 0 && rank != nodes[k] ? 2 : 0)) {
          g[k] = 0;
        }
      }
    };
  }
};

void noisy(Rank rank, Round round, std::span<const float> /*x*/, std::span<float> g) {
  for (std::size_t k = 0; k < g.size(); ++k) {
    RandomStream stream({.seed = 91,
                         .rank = rank,
                         .round = round,
                         .purpose = Purpose::test,
                         .bucket = static_cast<std::uint32_t>(k)});
    g[k] = static_cast<float>(std::sin(static_cast<double>(k)) + 0.3 * stream.normal());
  }
}

/// `local_steps` is for the algorithm that takes some by itself.
ClusterOptions options_of(const AlgorithmInfo& info, std::string compressor = "sign",
                          Round local_steps = 1) {
  return {.algorithm = info.has("limit") ? fmt::format("{}:limit={}", info.name, local_steps)
                                         : std::string(info.name),
          .compressor = std::move(compressor),
          .nodes = 5,
          .dimension = 43,
          .step = {.rule = "adam", .learning_rate = 0.01, .beta2 = 0.95},
          .freeze_step = kFreeze};
}

void run(Cluster& cluster, Round rounds, const GradientFunction& gradient) {
  const Status status = cluster.driver.run(rounds, gradient);
  CAPTURE(status.message());
  REQUIRE(status.ok());
}

/// Hears, well sealed, something else in place of one frame of each exchange from round `first` on,
/// and the right one once that is refused.
class Damaging final : public ForwardingAlgorithm {
 public:
  Damaging(std::unique_ptr<Algorithm> inner, Round first, int& refused)
      : ForwardingAlgorithm(std::move(inner)), first_(first), refused_(refused) {}

  Status complete(const Exchange& exchange) override {
    OtherFrames frames(exchange);
    if (round() < first_ || frames.count() == 0) {
      return inner().complete(exchange);
    }
    // The length of the last part in full precision is another one, or the part is cut short.
    Bytes wrong = frames.right(0);
    if (round() % 2 == 0) {
      wrong[wrong.size() - 4] ^= std::byte{0x15};
    } else {
      wrong.resize(wrong.size() - 3);
    }
    FrameHeader header = parse_frame(frames.right(0))->header;
    header.payload_bytes = wrong.size() - kFrameHeaderBytes;
    seal_frame(header, wrong);
    frames.show(0, wrong);
    const Status status = inner().complete(frames.exchange());
    if (status.ok()) {
      return status;
    }
    ++refused_;
    CHECK(status.message().find("is refused") != std::string::npos);
    frames.show_right(0);
    return inner().complete(frames.exchange());
  }

 private:
  Round first_;
  int& refused_;
};

/// Rounds of full precision before anything is frozen at all nodes.
Round exact_rounds(const AlgorithmInfo& info) { return gossips(info) ? kFreeze + 4 : kFreeze; }

}  // namespace

TEST_CASE("late elements: uncompressed, one follows plain Adam from its first gradient on") {
  for (const std::string name : {"apmsqueeze", "onebit-adam", "zeroone-adam"}) {
    for (const BiasCorrection correction :
         {BiasCorrection::always, BiasCorrection::warmup, BiasCorrection::never}) {
      CAPTURE(name);
      CAPTURE(static_cast<int>(correction));
      ClusterOptions options = options_of(algorithm_info(name), "none");
      options.step.bias_correction = correction;
      options.step.weight_decay = 0;
      Cluster cluster(options);
      const Round onset = kFreeze + 5;
      const std::size_t late = 17;
      const auto gradient = [&](Rank rank, Round round, std::span<const float> x,
                                std::span<float> g) {
        noisy(rank, round, x, g);
        g[late] = round < onset ? 0 : g[late];
      };
      run(cluster, onset, gradient);

      const auto adam = make_step_rule(options.step);
      ParameterLayout layout;
      append_block(layout, "late", {1});
      adam->resize(layout);
      std::vector<float> x = {cluster.x[0][late]};
      CHECK(x[0] == Cluster(options).x[0][late]);
      float last_step = 0;
      for (Round round = onset; round < onset + kFreeze; ++round) {
        std::vector<float> g(1);
        for (std::size_t node = 0; node < options.nodes; ++node) {
          std::vector<float> all(options.dimension);
          noisy(static_cast<Rank>(node), round, {}, all);
          g[0] += all[late];
        }
        g[0] *= 1.0F / static_cast<float>(options.nodes);
        std::vector<float> d(1);
        REQUIRE(adam->direction(round, x, g, d).ok());
        x[0] -= d[0];
        last_step = d[0];
        run(cluster, 1, gradient);
        CAPTURE(round);
        CHECK(same_bits(x, std::span(cluster.x[3]).subspan(late, 1)));
      }
      // Frozen now, it goes on with steps of that size.
      run(cluster, 1, gradient);
      const float frozen_step = x[0] - cluster.x[0][late];
      CAPTURE(last_step);
      CAPTURE(frozen_step);
      CHECK(frozen_step / last_step > 0.5F);
      CHECK(frozen_step / last_step < 2);
    }
  }
}

TEST_CASE("late elements: with few bits an element all algorithms bring them to the minimum") {
  for (const AlgorithmInfo* info : freezing_algorithms()) {
    for (const std::size_t nodes : {1U, 2U, 6U}) {
      CAPTURE(std::string(info->name));
      CAPTURE(nodes);
      // On so small a problem one bit is too rough for variances of few rounds, and for LAMB's
      // ratios.
      const bool lamb = info->name == "onebit-lamb";
      const bool rough = lamb || info->name == "zeroone-adam";
      ClusterOptions options = options_of(*info, rough ? "quant:8" : "sign", 2);
      options.nodes = nodes;
      options.seed = 3 + nodes;
      // LAMB's steps are relative to the size of the model.
      const Round rounds = lamb ? 6000 : 1500;
      options.step.learning_rate = lamb ? 0.003 : 0.02;
      options.step.schedule = parse_schedule("cosine", rounds);
      options.freeze_step = 20;
      const Quadratic problem(nodes, options.dimension, options.seed);
      const Onsets onsets(options.dimension, 60, nodes, 8);
      Cluster cluster(options);
      const auto start = cluster.mean();
      run(cluster, rounds, onsets.of(problem));
      auto optimum = start;
      for (int step = 0; step < 4000; ++step) {
        problem.descend(1, optimum);
      }
      const auto reached = cluster.mean();
      for (std::size_t k = 0; k < reached.size(); ++k) {
        CAPTURE(k);
        CAPTURE(onsets.rounds[k]);
        CAPTURE(reached[k] - optimum[k]);
        const bool learns = onsets.rounds[k] < 1000;
        const double wanted = learns ? optimum[k] : start[k];
        CHECK(std::abs(reached[k] - wanted) < 0.45);
      }
    }
  }
}

TEST_CASE("late elements: nodes agree to the bit, in whatever order frames arrive") {
  for (const AlgorithmInfo* info : freezing_algorithms()) {
    CAPTURE(std::string(info->name));
    ClusterOptions options = options_of(*info, "sign", 16);
    options.nodes = 6;
    const Onsets onsets(options.dimension, exact_rounds(*info), options.nodes, 11);
    Cluster eager(options);
    options.delivery = Delivery::late;
    Cluster reversed(options);
    for (Round round = 0; round < 70; ++round) {
      run(eager, 1, onsets.of(noisy));
      run(reversed, 1, onsets.of(noisy));
      REQUIRE(eager.x == reversed.x);
    }
    if (!gossips(*info)) {
      Cluster cluster([&] {
        ClusterOptions one = options_of(*info);
        one.nodes = options.nodes;
        return one;
      }());
      for (Round round = 0; round < 70; ++round) {
        run(cluster, 1, onsets.of(noisy));
        for (const auto& x : cluster.x) {
          REQUIRE(same_bits(x, cluster.x[0]));
        }
      }
      continue;
    }
    const auto variance = eager.node<GossipAdam>(0).variance();
    for (std::size_t node = 0; node < options.nodes; ++node) {
      CHECK(same_bits(eager.node<GossipAdam>(node).variance(), variance));
    }
    for (std::size_t k = 0; k < variance.size(); ++k) {
      CHECK((variance[k] > 0) == (onsets.rounds[k] < 1000));
    }
  }
}

TEST_CASE("late elements: a run that is saved in any round ends as one that goes on") {
  for (const AlgorithmInfo* info : freezing_algorithms()) {
    for (const Round interval : {Round{1}, Round{3}}) {
      CAPTURE(std::string(info->name));
      CAPTURE(interval);
      ClusterOptions options = options_of(*info, "sign", 16);
      options.communication_interval = interval;
      const Onsets onsets(options.dimension, interval * exact_rounds(*info), options.nodes, 23);
      const Round rounds = interval * (exact_rounds(*info) + 24);
      Cluster whole(options);
      run(whole, rounds, onsets.of(noisy));
      Cluster saved(options);
      for (Round at = 1; at < rounds; ++at) {
        run(saved, 1, onsets.of(noisy));
        if (at % 5 != 0 && at < interval * exact_rounds(*info)) {
          continue;
        }
        Cluster resumed(options);
        for (std::size_t node = 0; node < options.nodes; ++node) {
          ByteBuffer state;
          saved.driver.node(node).save(state);
          resumed.x[node] = saved.x[node];
          ByteReader in(state.bytes());
          REQUIRE(resumed.driver.node(node).load(in).ok());
          CHECK(in.finished());
        }
        run(resumed, rounds - at, onsets.of(noisy));
        CAPTURE(at);
        REQUIRE(resumed.x == whole.x);
      }
    }
  }
}

TEST_CASE("late elements: dead ones cost a few bytes a frame, and none where all have a variance") {
  for (const AlgorithmInfo* info : freezing_algorithms()) {
    CAPTURE(std::string(info->name));
    ClusterOptions options = options_of(*info);
    options.dimension = 6000;
    const auto bytes_of_round = [&](const GradientFunction& gradient) {
      Cluster cluster(options);
      run(cluster, exact_rounds(*info) + 2, gradient);
      const auto before = cluster.driver.bytes_sent(1);
      run(cluster, 1, gradient);
      return cluster.driver.bytes_sent(1) - before;
    };
    const auto all = bytes_of_round(noisy);
    const auto dead =
        bytes_of_round([](Rank rank, Round round, std::span<const float> x, std::span<float> g) {
          noisy(rank, round, x, g);
          std::ranges::fill(g.first(1300), 0.0F);
        });
    CHECK(dead >= all);
    CHECK(static_cast<double>(dead) <= 1.05 * static_cast<double>(all));
  }
}

TEST_CASE("late elements: after a damaged frame the right one gives what it would have given") {
  for (const AlgorithmInfo* info : freezing_algorithms()) {
    CAPTURE(std::string(info->name));
    const ClusterOptions options = options_of(*info);
    const Onsets onsets(options.dimension, exact_rounds(*info), options.nodes, 31);
    int refused = 0;
    Cluster whole(options);
    Cluster damaged(options, [&](auto inner) {
      return std::make_unique<Damaging>(std::move(inner), exact_rounds(*info), refused);
    });
    run(whole, 60, onsets.of(noisy));
    run(damaged, 60, onsets.of(noisy));
    CHECK(damaged.x == whole.x);
    CHECK(refused > 100);
  }
}

TEST_CASE("late elements: weight decay alone wakes none") {
  for (const std::string name : {"zeroone-adam", "onebit-adam-gossip"}) {
    CAPTURE(name);
    ClusterOptions options = options_of(algorithm_info(name));
    options.step.weight_decay = 1e-3;
    Cluster cluster(options);
    const auto start = cluster.x[0];
    run(cluster, 90, [](Rank rank, Round round, std::span<const float> x, std::span<float> g) {
      noisy(rank, round, x, g);
      std::ranges::fill(g.first(9), 0.0F);
    });
    for (std::size_t k = 0; k < 9; ++k) {
      CHECK(std::abs(cluster.x[2][k] - start[k]) < (name == "zeroone-adam" ? 1e-9F : 2e-3F));
    }
    CHECK(std::abs(cluster.x[2][20] - start[20]) > 0.05F);
  }
}

TEST_CASE("late elements: moments that overflow as an element joins end the run") {
  ClusterOptions options = options_of(algorithm_info("apmsqueeze"), "none");
  options.nodes = 2;
  options.freeze_step = 1;
  options.step.beta2 = 0.999;
  options.step.bias_correction = BiasCorrection::warmup;  // v = v̂ from then on
  Cluster cluster(options);
  const Status status = cluster.driver.run(
      8, [](Rank /*rank*/, Round round, std::span<const float> /*x*/, std::span<float> g) {
        std::ranges::fill(g, 1.0F);
        g[7] = round == 3 ? 3e19F : 0.0F;
      });
  CAPTURE(status.message());
  CHECK(status.fault() == Fault::non_finite);
  CHECK(status.message().find("element 7, whose gradients came late") != std::string::npos);
}

TEST_CASE("late elements: a tensor whose gradients come late steps as far as with LAMB") {
  for (const double decay : {0.0, 0.01}) {
    CAPTURE(decay);
    ClusterOptions options = options_of(algorithm_info("onebit-lamb"), "quant:8");
    options.dimension = 200;
    options.initial_scale = 0.05;
    options.step.weight_decay = decay;
    append_block(options.layout, "a", {10, 10});
    append_block(options.layout, "b", {10, 10});
    const auto gradient = [](Rank rank, Round round, std::span<const float> x, std::span<float> g) {
      noisy(rank, round, x, g);
      if (round < kFreeze + 5) {
        std::ranges::fill(g.last(100), 0.0F);
      }
    };
    const auto moved = [&](const ClusterOptions& chosen) {
      Cluster cluster(chosen);
      run(cluster, kFreeze + 5, gradient);
      const auto before = cluster.x[0];
      run(cluster, 30, gradient);
      double sum = 0;
      for (std::size_t k = 100; k < 200; ++k) {
        sum += std::pow(static_cast<double>(cluster.x[0][k] - before[k]), 2);
      }
      return std::sqrt(sum);
    };
    ClusterOptions plain = options;
    plain.algorithm = "allreduce";
    plain.compressor = {};
    plain.step.rule = "lamb";
    const double ratio = moved(options) / moved(plain);
    CAPTURE(ratio);
    CHECK(ratio > 0.5);
    CHECK(ratio < 2);
  }
}

}  // namespace sotto::test::late_elements_test

// DeMo: the largest cosine coefficients of the nodes' momenta, and steps along the sign of their
// mean.
#include <sotto/optim/algorithms/demo.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "optim/cluster.h"
#include "optim/noise.h"
#include "optim/saved_state.h"

namespace sotto::test::demo_test {

namespace {

constexpr std::size_t kNodes = 5;
constexpr double kRate = 0.05;

std::uint64_t draw_seed(std::uint32_t number) {
  RandomStream stream({.seed = 2411'19870, .round = number, .purpose = Purpose::test});
  return stream.next_u64() >> 40U;
}

/// A matrix with ragged blocks, and biases.
ParameterLayout small_network() {
  ParameterLayout layout;
  append_block(layout, "w", {70, 9});
  append_block(layout, "b", {70});
  append_block(layout, "v", {5, 70});
  return layout;
}

ClusterOptions options_for(std::string algorithm, std::string compressor, std::uint64_t seed) {
  ClusterOptions options = {.algorithm = std::move(algorithm),
                            .compressor = std::move(compressor),
                            .nodes = kNodes,
                            .step = {.learning_rate = kRate},
                            .seed = seed};
  options.layout = small_network();
  options.dimension = dimension_of(options.layout);
  return options;
}

/// The paper's rule, with the compressor that `demo` has.
class ByThePaper {
 public:
  ByThePaper(const ClusterOptions& options, double decay, const std::vector<float>& x)
      : decay_(static_cast<float>(decay)),
        codec_(make_compressor(options.compressor, ContractKind::contraction, host_ops(),
                               options.layout)),
        momenta_(options.nodes, std::vector<float>(options.dimension)),
        x_(x.begin(), x.end()),
        unclear_(x.size()) {}

  void step(const GradientFunction& gradient, Round round, double rate, double weight_decay) {
    const std::size_t d = x_.size();
    std::vector<float> g(d);
    std::vector<double> mean(d);
    double largest = 0;
    for (std::size_t i = 0; i < momenta_.size(); ++i) {
      const std::vector<float> at(x_.begin(), x_.end());
      gradient(static_cast<Rank>(i), round, at, g);
      for (std::size_t k = 0; k < d; ++k) {
        momenta_[i][k] = decay_ * momenta_[i][k] + static_cast<float>(rate) * g[k];
      }
      const std::vector<float> before = momenta_[i];
      std::vector<std::byte> bytes(codec_->max_bytes(d));
      const std::size_t used = codec_->encode_residual(momenta_[i], {}, bytes);
      std::vector<float> sent(d);
      REQUIRE(codec_->decode_add(std::span(bytes).first(used), 1, sent).ok());
      for (std::size_t k = 0; k < d; ++k) {
        mean[k] += static_cast<double>(sent[k]) / static_cast<double>(momenta_.size());
        largest = std::fmax(largest, std::fabs(static_cast<double>(before[k])));
      }
    }
    for (std::size_t k = 0; k < d; ++k) {
      const double sign = mean[k] > 0 ? 1 : mean[k] < 0 ? -1 : 0;
      unclear_[k] = unclear_[k] || (std::fabs(mean[k]) < 1e-6 * largest && mean[k] != 0);
      x_[k] = (1 - rate * weight_decay) * x_[k] - rate * sign;
    }
  }

  const std::vector<float>& momentum(std::size_t node) const { return momenta_[node]; }
  /// The distance of a model from this one, of elements whose every sign was clear: two ways of
  /// summing up may disagree about those of a rounding. They are to be few.
  double gap_to(const std::vector<float>& y) const {
    double gap = 0;
    for (std::size_t k = 0; k < x_.size(); ++k) {
      gap = unclear_[k] ? gap : std::fmax(gap, std::fabs(x_[k] - static_cast<double>(y[k])));
    }
    CHECK(static_cast<std::size_t>(std::ranges::count(unclear_, true)) < x_.size() / 20);
    return gap;
  }

 private:
  float decay_;
  std::unique_ptr<Compressor> codec_;
  std::vector<std::vector<float>> momenta_;
  std::vector<double> x_;
  std::vector<bool> unclear_;
};

std::string refusal(const ClusterOptions& options) {
  try {
    const Cluster cluster(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("demo: the longest message alone decides no sign with clip=median, and all without") {
  // Four nodes pull all elements up by 1, 2, 3 and 4; one pulls them down by a thousand.
  const auto gradient = [](Rank rank, Round /*round*/, std::span<const float> /*x*/,
                           std::span<float> g) {
    std::ranges::fill(g, rank == 0 ? 1000.0F : -static_cast<float>(rank));
  };
  const auto moved = [&](const std::string& algorithm) {
    Cluster cluster(options_for(algorithm, "none", 7));
    const auto before = cluster.x[0];
    REQUIRE(cluster.driver.run(3, gradient).ok());
    for (const auto& model : cluster.x) {
      REQUIRE(same_bits(model, cluster.x[0]));
    }
    return static_cast<double>(cluster.x[0][11] - before[11]);
  };
  CHECK(moved("demo") == doctest::Approx(-3 * kRate));
  CHECK(moved("demo:clip=median") == doctest::Approx(3 * kRate));
}

TEST_CASE("demo is the paper's rule, whatever decay, compressor, schedule and weight decay") {
  std::uint32_t number = 0;
  for (const std::string compressor :
       {"dct/topk:0.05", "dct/topk:0.05,values=1,chunk=64", "topk:0.1", "dct/topk:0.02; 1d=none"}) {
    for (const double decay : {0.9, 1.0}) {
      for (const double weight_decay : {0.0, 0.3}) {
        const std::uint64_t seed = draw_seed(number++);
        CAPTURE(compressor);
        CAPTURE(decay);
        CAPTURE(weight_decay);
        CAPTURE(seed);
        auto options =
            options_for(decay == 1 ? "demo:decay=1" : "demo:decay=0.9", compressor, seed);
        options.step.weight_decay = weight_decay;
        options.step.schedule = parse_schedule("step:10:0.25", 25);
        Cluster cluster(options);
        ByThePaper paper(options, decay, cluster.x[0]);
        const auto gradient = noise_of(seed);
        for (Round t = 0; t < 25; ++t) {
          // What is left in the momenta keeps the rate that it came with.
          const double rate = kRate * options.step.schedule.multiplier(t);
          paper.step(gradient, t, rate, weight_decay);
          REQUIRE(cluster.driver.run(1, gradient).ok());
          REQUIRE(paper.gap_to(cluster.x[0]) < 2e-5);
        }
        for (std::size_t i = 0; i < kNodes; ++i) {
          CHECK(same_bits(cluster.x[i], cluster.x[0]));
          CHECK(largest_gap(cluster.node<Demo>(i).momentum(), paper.momentum(i)) < 1e-5);
        }
      }
    }
  }
}

TEST_CASE("demo with an exact compressor is signSGD with the mean gradient, whatever decay") {
  for (const std::string spec : {"demo", "demo:decay=0.5", "demo:decay=1"}) {
    const std::uint64_t seed = draw_seed(100);
    CAPTURE(spec);
    CAPTURE(seed);
    Cluster cluster(options_for(spec, "none", seed));
    const auto gradient = noise_of(seed);
    const std::size_t d = cluster.x[0].size();
    for (Round t = 0; t < 8; ++t) {
      const auto before = cluster.x[0];
      std::vector<double> mean(d);
      std::vector<float> g(d);
      for (std::size_t i = 0; i < kNodes; ++i) {
        gradient(static_cast<Rank>(i), t, {}, g);
        for (std::size_t k = 0; k < d; ++k) {
          mean[k] += static_cast<double>(g[k]) / kNodes;
        }
      }
      REQUIRE(cluster.driver.run(1, gradient).ok());
      for (std::size_t k = 0; k < d; ++k) {
        const double moved = static_cast<double>(before[k] - cluster.x[0][k]);
        if (std::fabs(mean[k]) > 1e-5) {
          REQUIRE(moved == doctest::Approx(mean[k] > 0 ? kRate : -kRate).epsilon(1e-4));
        }
      }
      for (std::size_t i = 0; i < kNodes; ++i) {
        const auto left = cluster.node<Demo>(i).momentum();
        REQUIRE(std::ranges::all_of(left, [](float value) { return value == 0; }));
      }
    }
  }
}

TEST_CASE("demo: what nodes hold back and what they sent is the momentum without compression") {
  // One node, so that what it sends is what is applied, were it not for the sign.
  for (const double decay : {1.0, 0.8}) {
    const std::uint64_t seed = draw_seed(200);
    CAPTURE(decay);
    CAPTURE(seed);
    auto options = options_for("demo:decay=" + std::to_string(decay), "dct/topk:0.03", seed);
    options.nodes = 1;
    Cluster cluster(options);
    const auto gradient = noise_of(seed);
    const auto codec =
        make_compressor(options.compressor, ContractKind::contraction, host_ops(), options.layout);
    const std::size_t d = options.dimension;
    std::vector<double> whole(d);  // Σ β^(t−s) γ g(s)
    std::vector<double> sent(d);   // Σ β^(t−s) c(s)
    std::vector<float> g(d);
    for (Round t = 0; t < 30; ++t) {
      std::vector<float> m(d);
      gradient(0, t, {}, g);
      const auto before = cluster.node<Demo>(0).momentum();
      for (std::size_t k = 0; k < d; ++k) {
        m[k] = static_cast<float>(decay) * before[k] + static_cast<float>(kRate) * g[k];
        whole[k] = decay * whole[k] + kRate * static_cast<double>(g[k]);
      }
      std::vector<std::byte> bytes(codec->max_bytes(d));
      const std::size_t used = codec->encode(m, {}, bytes);
      std::vector<float> c(d);
      REQUIRE(codec->decode_add(std::span(bytes).first(used), 1, c).ok());
      REQUIRE(cluster.driver.run(1, gradient).ok());
      for (std::size_t k = 0; k < d; ++k) {
        sent[k] = decay * sent[k] + static_cast<double>(c[k]);
        const double held = static_cast<double>(cluster.node<Demo>(0).momentum()[k]);
        REQUIRE(std::fabs(held + sent[k] - whole[k]) < 1e-5);
      }
    }
  }
}

TEST_CASE("demo: where nothing is sent nothing moves but by weight decay") {
  for (const double weight_decay : {0.0, 0.5}) {
    auto options = options_for("demo", "dct/topk:0.05", 3);
    options.step.weight_decay = weight_decay;
    Cluster cluster(options);
    const auto before = cluster.x[0];
    const auto zero = [](Rank, Round, std::span<const float>, std::span<float> g) {
      std::ranges::fill(g, 0.0F);
    };
    REQUIRE(cluster.driver.run(3, zero).ok());
    for (std::size_t k = 0; k < before.size(); ++k) {
      const double left = std::pow(1 - kRate * weight_decay, 3);
      CHECK(cluster.x[4][k] ==
            doctest::Approx(left * static_cast<double>(before[k])).epsilon(1e-5));
    }
  }
}

TEST_CASE("demo: a mean of equal and opposite messages is no step") {
  auto options = options_for("demo", "topk:0.1", 4);
  options.nodes = 2;
  Cluster cluster(options);
  const auto before = cluster.x[0];
  const auto opposite = [](Rank rank, Round, std::span<const float>, std::span<float> g) {
    for (std::size_t k = 0; k < g.size(); ++k) {
      g[k] = (rank == 0 ? 1.0F : -1.0F) * static_cast<float>(k % 11);
    }
  };
  REQUIRE(cluster.driver.run(4, opposite).ok());
  CHECK(same_bits(before, cluster.x[0]));
  CHECK(same_bits(before, cluster.x[1]));
}

TEST_CASE("demo sends as many coefficients as are kept, to all other nodes") {
  const auto options = options_for("demo", "dct/topk:0.02", draw_seed(300));
  Cluster cluster(options);
  REQUIRE(cluster.driver.run(3, noise_of(1)).ok());
  const auto kept = static_cast<double>(options.dimension) * 0.02;
  const double sent = static_cast<double>(cluster.driver.bytes_sent(0)) / 3 / (kNodes - 1);
  CHECK(sent > 64 + 4 * kept);
  CHECK(sent < 64 + 10 + 6 * (kept + 1));
}

TEST_CASE("demo descends on unlike quadratics to a distance of its rate") {
  const std::uint64_t seed = draw_seed(400);
  CAPTURE(seed);
  auto options = options_for("demo:decay=1", "dct/topk:0.05", seed);
  options.step.learning_rate = 0.01;
  options.step.schedule = parse_schedule("cosine", 1500);
  Cluster cluster(options);
  const Quadratic task(kNodes, options.dimension, seed);
  const double before = task.excess(cluster.mean());
  REQUIRE(cluster.driver.run(1500, task).ok());
  CHECK(task.excess(cluster.mean()) < 0.01 * before);
}

TEST_CASE("demo refuses what it cannot honour") {
  auto options = options_for("demo", "dct/topk:0.05", 1);
  options.step.clip_norm = 1;
  CHECK(refusal(options).find("clip_norm: demo steps along signs") == 0);
  options = options_for("demo", "quant:1", 1);
  CHECK(refusal(options).find("contraction") != std::string::npos);
  options = options_for("demo:decay=0", "dct/topk:0.05", 1);
  CHECK(refusal(options).find("decay") != std::string::npos);
  options = options_for("demo:decay=1.5", "dct/topk:0.05", 1);
  CHECK(refusal(options).find("0.999 is the paper's") != std::string::npos);
  options = options_for("demo", "dct/topk:0.05", 1);
  options.buckets = 2;
  CHECK(refusal(options).find("as a whole") != std::string::npos);
}

TEST_CASE("demo's own compressor knows the model's matrices") {
  Cluster cluster(options_for("demo", "", 1));
  REQUIRE(cluster.driver.run(2, noise_of(7)).ok());
  const std::string spec = "dct/topk:0.0078125,chunk=4096";
  Cluster named(options_for("demo", spec, 1));
  REQUIRE(named.driver.run(2, noise_of(7)).ok());
  CHECK(same_bits(named.x[0], cluster.x[0]));
  auto rows = options_for("demo", spec, 1);
  rows.layout = {};
  Cluster without(rows);
  REQUIRE(without.driver.run(2, noise_of(7)).ok());
  CHECK_FALSE(same_bits(without.x[0], cluster.x[0]));
}

}  // namespace sotto::test::demo_test

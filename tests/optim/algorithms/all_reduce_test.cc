#include <sotto/optim/algorithms/all_reduce.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/buckets.h>
#include <sotto/base/frame.h>
#include <sotto/compress/metered.h>
#include <sotto/optim/exchange/chunks.h>

#include "optim/cluster.h"
#include "optim/other_frames.h"

namespace sotto::test::all_reduce_test {

namespace {

bool all_equal(const std::vector<std::vector<float>>& models) {
  return std::all_of(models.begin(), models.end(),
                     [&](const auto& model) { return same_bits(model, models[0]); });
}

}  // namespace

TEST_CASE("all-reduce is plain SGD on the mean gradient, with all nodes equal to the bit") {
  constexpr double kRate = 0.1;
  for (std::size_t nodes = 1; nodes <= 17; ++nodes) {
    for (const std::size_t dimension : {0U, 1U, 7U, 1000U}) {
      CAPTURE(nodes);
      CAPTURE(dimension);
      Cluster cluster({.algorithm = "allreduce",
                       .nodes = nodes,
                       .dimension = dimension,
                       .step = {.learning_rate = kRate}});
      const Quadratic task(nodes, dimension, 9);
      auto expected = cluster.mean();
      for (int t = 0; t < 20; ++t) {
        const Status status = cluster.driver.run(1, task);
        CAPTURE(status.message());
        REQUIRE(status.ok());
        REQUIRE(all_equal(cluster.x));
        task.descend(kRate, expected);
      }
      for (std::size_t k = 0; k < dimension; ++k) {
        CHECK(std::fabs(double{cluster.x[0][k]} - expected[k]) < 3e-6);
      }
    }
  }
}

TEST_CASE("a chunk is summed in ring order from its own node on") {
  // In float32, (1 + 2^-24) + 2^-24 is 1, and (2^-24 + 2^-24) + 1 is 1 + 2^-23: the order shows.
  const float tiny = 0x1p-24F;
  const std::vector<std::vector<float>> gradients = {
      {1, 1, 1}, {tiny, tiny, tiny}, {tiny, tiny, tiny}};
  Cluster cluster({.algorithm = "allreduce",
                   .nodes = 3,
                   .dimension = 3,
                   .step = {.learning_rate = 1},
                   .initial_scale = 0});
  REQUIRE(cluster.driver
              .run(1,
                   [&](Rank rank, Round, std::span<const float>, std::span<float> g) {
                     std::copy_n(gradients[static_cast<std::size_t>(rank)].begin(), 3, g.begin());
                   })
              .ok());
  const float third = 1.0F / 3;
  CHECK(cluster.x[0][0] == -(1.0F * third));            // (g0 + g1) + g2
  CHECK(cluster.x[0][1] == -((1 + 0x1p-23F) * third));  // (g1 + g2) + g0
  CHECK(cluster.x[0][2] == -(1.0F * third));            // (g2 + g0) + g1
}

TEST_CASE("a gradient in buckets leaves the mean, and all nodes equal to the bit") {
  struct Case {
    std::string compressor;
    std::size_t nodes;
    std::size_t last;  // elements of the last bucket
  };
  for (const auto& [compressor, nodes, last] :
       {Case{"none", 5, 37}, {"none", 5, 3}, {"none", 2, 1}, {"none", 1, 37}, {"quant:8", 5, 37}}) {
    CAPTURE(compressor);
    CAPTURE(nodes);
    CAPTURE(last);
    const std::size_t dimension = 2 * 4096 + last;
    ClusterOptions options{.algorithm = "allreduce",
                           .compressor = compressor,
                           .nodes = nodes,
                           .dimension = dimension,
                           .step = {.learning_rate = 0.1},
                           .allow_contract_violation = true};
    const Quadratic task(nodes, dimension, 9);
    Cluster whole(options);
    REQUIRE(whole.driver.run(10, task).ok());
    options.buckets = 3;
    Cluster cut(options);
    options.delivery = Delivery::late;
    Cluster late(options);
    REQUIRE(cut.driver.run(10, task).ok());
    REQUIRE(late.driver.run(10, task).ok());
    CHECK(all_equal(cut.x));
    CHECK(late.x == cut.x);
    double apart = 0;
    for (std::size_t k = 0; k < dimension; ++k) {
      apart = std::max(apart, std::fabs(double{cut.x[0][k]} - double{whole.x[0][k]}));
    }
    CHECK(apart < (compressor == "none" ? 1e-5 : 0.1));
    for (const auto& [edge, traffic] : cut.driver.traffic()) {
      CHECK(traffic.frames == 10 * 3 * 2 * (nodes - 1));
    }
  }
}

TEST_CASE("buckets of equal values are rounded by noise of their own, in every phase") {
  constexpr std::size_t kDimension = 2 * 4096;
  ClusterOptions options{.algorithm = "allreduce",
                         .compressor = "quant:4",
                         .nodes = 2,
                         .dimension = kDimension,
                         .buckets = 2,
                         .allow_contract_violation = true};
  std::vector<float> x(kDimension);
  const auto node =
      make_algorithm("allreduce", node_setup(options, 0, x, cluster_topology(options)));
  Exchange out;
  node->begin_round();
  std::vector<float> gradient(kDimension);
  for (std::size_t k = 0; k < kDimension; ++k) {
    gradient[k] = std::sin(static_cast<float>(k % 4096));
  }
  REQUIRE(node->take_gradient(gradient).ok());
  REQUIRE(*node->next_exchange(out));
  const Exchange first = out;
  REQUIRE(*node->next_exchange(out));
  const Exchange second = out;
  const auto codes = [](const Exchange& exchange) {
    return exchange.sends.at(0).frame.subspan(kFrameHeaderBytes);
  };
  CHECK(codes(first).size() == codes(second).size());
  CHECK_FALSE(std::ranges::equal(codes(first), codes(second)));
}

TEST_CASE("a frame that cannot be decoded is refused with its bucket, and the right one is taken") {
  constexpr std::size_t kDimension = 2 * 4096;
  ClusterOptions options{
      .algorithm = "allreduce", .nodes = 2, .dimension = kDimension, .buckets = 2};
  std::vector<float> x(kDimension);
  const auto node =
      make_algorithm("allreduce", node_setup(options, 0, x, cluster_topology(options)));
  Exchange out;
  node->begin_round();
  const std::vector<float> gradient(kDimension, 1);
  REQUIRE(node->take_gradient(gradient).ok());
  REQUIRE(*node->next_exchange(out));
  REQUIRE(*node->next_exchange(out));
  REQUIRE(out.tag.bucket == 1);
  const Exchange exchange = out;
  std::vector<std::byte> frame(exchange.sends.at(0).frame.begin(),
                               exchange.sends.at(0).frame.end());
  auto header = parse_frame(frame)->header;
  header.sender = 1;
  auto bad = frame;
  std::fill_n(bad.begin() + kFrameHeaderBytes, sizeof(float), std::byte{0xFF});  // a NaN
  seal_frame(header, bad);
  const Status refused = node->complete(with_frame(exchange, bad));
  CHECK(refused.fault() == Fault::non_finite);
  CHECK_MESSAGE(refused.message().find("bucket 1 of 2") != std::string::npos, refused.message());
}

TEST_CASE("what all-reduce sends is measured where somebody asks, whatever encodes it") {
  for (const std::string compressor : {"none", "quant:8"}) {
    CAPTURE(compressor);
    const ClusterOptions pair{.algorithm = "allreduce",
                              .compressor = compressor,
                              .nodes = 2,
                              .dimension = 2 * 4096,
                              .allow_contract_violation = true};
    std::vector<float> x(pair.dimension);
    const auto meter = std::make_shared<CompressionMeter>();
    AlgorithmSetup setup = node_setup(pair, 0, x, cluster_topology(pair));
    setup.compressor = make_metered(std::move(setup.compressor), meter);
    const auto node = make_algorithm("allreduce", std::move(setup));
    meter->measure_from(0);
    Exchange out;
    node->begin_round();
    const std::vector<float> gradient(pair.dimension, 2);
    REQUIRE(node->take_gradient(gradient).ok());
    REQUIRE(*node->next_exchange(out));
    REQUIRE(meter->last());
    CHECK(meter->last()->signal == doctest::Approx(4.0 * 4096));  // one chunk of two
  }
}

TEST_CASE("buckets are posted in one order: by phase, and in a phase by bucket") {
  constexpr std::size_t kDimension = 2 * 4096 + 37;
  ClusterOptions options{
      .algorithm = "allreduce", .nodes = 3, .dimension = kDimension, .buckets = 3};
  std::vector<float> x(kDimension);
  const auto node =
      make_algorithm("allreduce", node_setup(options, 0, x, cluster_topology(options)));
  CHECK(node->peers().frames_a_round == 3);
  Exchange out;
  node->begin_round();
  std::vector<Exchange> posted;
  const auto take = [&] {
    while (true) {
      const auto more = node->next_exchange(out);
      REQUIRE(more.ok());
      if (!*more) {
        return;
      }
      posted.push_back(out);
    }
  };
  const std::vector<float> gradient(kDimension, 1);
  REQUIRE(node->take_gradient(gradient).ok());
  take();
  REQUIRE(posted.size() == 3);
  CHECK_FALSE(node->parameters_ready());
  // Bucket 2 is there first, but goes on only after the others.
  const auto finish = [&](std::size_t number) {
    const Exchange exchange = posted[number];
    std::vector<std::byte> frame(exchange.sends.at(0).frame.begin(),
                                 exchange.sends.at(0).frame.end());
    const std::size_t elements =
        chunk_of(Buckets(kDimension, 3).length(exchange.tag.bucket), 3, 2 - exchange.tag.phase)
            .size;
    frame.resize(kFrameHeaderBytes + 4 * elements);
    auto header = parse_frame(exchange.sends.at(0).frame)->header;
    header.sender = 2;
    header.elements = elements;
    header.payload_bytes = 4 * elements;
    seal_frame(header, frame);
    REQUIRE(node->complete(with_frame(exchange, frame)).ok());
    take();
  };
  finish(2);
  finish(1);
  CHECK(posted.size() == 3);
  finish(0);
  REQUIRE(posted.size() == 6);
  for (std::size_t k = 0; k < posted.size(); ++k) {
    CHECK(posted[k].tag ==
          ExchangeTag{0, static_cast<std::uint16_t>(k / 3), static_cast<std::uint32_t>(k % 3)});
  }
}

TEST_CASE(
    "all-reduce sends 2 (n − 1) frames a round to the next node, 8 d (n − 1)/n bytes of values") {
  Cluster cluster({.algorithm = "allreduce", .nodes = 4, .dimension = 10});
  REQUIRE(cluster.driver.run(5, Quadratic(4, 10, 9)).ok());
  CHECK(cluster.driver.traffic().size() == 4);
  for (const auto& [edge, traffic] : cluster.driver.traffic()) {
    CHECK(edge.second == (edge.first + 1) % 4);
    CHECK(traffic.frames == 5 * 6);
    // Chunks of 3, 3, 2, 2 elements: node r sends all but one of them in each half.
    const std::uint64_t values = traffic.bytes - traffic.frames * kFrameHeaderBytes;
    CHECK(values % 20 == 0);
    CHECK(values >= 5 * 4 * 2 * 7);
    CHECK(values <= 5 * 4 * 2 * 8);
  }
}

TEST_CASE("a lossy all-reduce, where it is allowed, still leaves all nodes equal to the bit") {
  for (const std::string spec : {"quant:8", "sign", "topk:0.1"}) {
    CAPTURE(spec);
    Cluster cluster({.algorithm = "allreduce",
                     .compressor = spec,
                     .nodes = 5,
                     .dimension = 33,
                     .allow_contract_violation = true});
    REQUIRE(cluster.driver.run(20, Quadratic(5, 33, 9)).ok());
    CHECK(all_equal(cluster.x));
  }
}

TEST_CASE("every step rule works behind all-reduce as it does alone") {
  for (const StepRuleOptions& step :
       {StepRuleOptions{.learning_rate = 0.05, .momentum = 0.9, .nesterov = true},
        StepRuleOptions{.rule = "adamw", .learning_rate = 0.01, .weight_decay = 0.1}}) {
    // Two nodes with the same gradient: its mean is the gradient itself, to the bit.
    const auto gradient = [](Rank, Round round, std::span<const float> x, std::span<float> g) {
      for (std::size_t k = 0; k < x.size(); ++k) {
        g[k] = x[k] - 1 + static_cast<float>(round % 3) / 8;
      }
    };
    Cluster pair({.algorithm = "allreduce", .nodes = 2, .dimension = 9, .step = step});
    Cluster alone({.algorithm = "allreduce", .nodes = 1, .dimension = 9, .step = step});
    REQUIRE(pair.driver.run(50, gradient).ok());
    REQUIRE(alone.driver.run(50, gradient).ok());
    CHECK(pair.x[0] == alone.x[0]);
    CHECK(pair.x[1] == alone.x[0]);
  }
}

}  // namespace sotto::test::all_reduce_test

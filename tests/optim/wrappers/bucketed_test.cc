// An algorithm cut into buckets.
#include <sotto/optim/wrappers/bucketed.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/optim/wrappers/forwarding_algorithm.h>

#include "optim/cluster.h"
#include "optim/other_frames.h"

namespace sotto::test::bucketed_test {

namespace {

constexpr std::size_t kNodes = 4;
constexpr std::size_t kGrain = 4096;
/// Three buckets, the last of them short.
constexpr std::size_t kDimension = 2 * kGrain + 37;

ClusterOptions options_for(std::string_view algorithm, std::uint32_t buckets) {
  return {.algorithm = std::string(algorithm),
          .nodes = kNodes,
          .dimension = kDimension,
          .step = {.learning_rate = 0.05, .momentum = 0.9, .clip_norm = 20},
          .buckets = buckets};
}

std::vector<std::string> separable() {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.takes_buckets() && info.cutting != Cutting::by_itself) {
      names.emplace_back(info.name);
    }
  }
  return names;
}

Status run(Cluster& cluster, Round rounds) {
  return cluster.driver.run(rounds, Quadratic(kNodes, kDimension, 3, 0.1));
}

/// One node of a pair on D-PSGD's or another's exchange, by hand.
struct Lone {
  explicit Lone(const std::string& algorithm) : Lone(algorithm, options_for(algorithm, 3).step) {}
  Lone(const std::string& algorithm, const StepRuleOptions& rule, std::uint32_t buckets = 3)
      : options(options_for(algorithm, buckets)), x(kDimension, 1) {
    options.step = rule;
    node = make_algorithm(spec_of(options), setup());
  }

  AlgorithmSetup setup() {
    options.nodes = 2;
    AlgorithmSetup made = node_setup(options, 0, x, cluster_topology(options));
    made.compressor = make_compressor("none");
    return made;
  }
  /// All exchanges that can go now.
  std::vector<Exchange> take() const {
    std::vector<Exchange> all;
    Exchange out;
    for (;;) {
      const auto more = node->next_exchange(out);
      REQUIRE(more.ok());
      if (!*more) {
        return all;
      }
      all.push_back(out);
    }
  }
  /// The peer's frames are as this node's own, but for the sender.
  void finish(const Exchange& exchange, std::vector<Exchange>* further) {
    std::vector<std::byte> frame(exchange.sends.at(0).frame.begin(),
                                 exchange.sends.at(0).frame.end());
    auto header = parse_frame(frame)->header;
    header.sender = 1;
    seal_frame(header, frame);
    REQUIRE(node->complete(with_frame(exchange, frame)).ok());
    *further = take();
  }

  ClusterOptions options;
  std::vector<float> x;
  std::unique_ptr<Algorithm> node;
};

/// Hands each gradient to the algorithm in parts, in one of several orders.
class InParts final : public ForwardingAlgorithm {
 public:
  InParts(std::unique_ptr<Algorithm> inner, std::uint64_t order)
      : ForwardingAlgorithm(std::move(inner)), order_(order) {
    // Some lie in one bucket, some in several.
    for (std::size_t first = 0, length = 1000; first < kDimension; length += 700) {
      const std::size_t end = std::min(first + length, kDimension);
      parts_.emplace_back(first, end);
      first = end;
    }
  }

  Status take_gradient(std::span<const float> gradient) override {
    RandomStream stream({.seed = order_, .round = round(), .purpose = Purpose::test});
    std::vector<std::pair<std::size_t, std::size_t>> parts = parts_;
    if (order_ == 0) {
      std::ranges::reverse(parts);
    }
    while (!parts.empty()) {
      const auto pick =
          parts.begin() + static_cast<std::ptrdiff_t>(order_ < 2 ? 0 : stream.below(parts.size()));
      const auto [first, end] = *pick;
      parts.erase(pick);
      const auto part = gradient.subspan(first, end - first);
      if (Status status = inner().gradient_part(first, part); !status.ok()) {
        return status;
      }
    }
    return {};
  }

 private:
  std::uint64_t order_;
  std::vector<std::pair<std::size_t, std::size_t>> parts_;
};

}  // namespace

TEST_CASE("where a compressor goes element by element, buckets change no bit") {
  for (const std::string& name : separable()) {
    // What rounds to the nearest needs no random numbers, which differ by bucket.
    for (const std::string compressor : {"none", "fp16"}) {
      auto whole = options_for(name, 1);
      whole.compressor = compressor;
      whole.allow_contract_violation = true;
      Cluster reference(whole);
      REQUIRE(run(reference, 15).ok());
      for (const std::uint32_t buckets : {2U, 3U, 1000U}) {
        for (const Delivery delivery : {Delivery::eager, Delivery::late}) {
          CAPTURE(name);
          CAPTURE(compressor);
          CAPTURE(buckets);
          auto options = whole;
          options.buckets = buckets;
          options.delivery = delivery;
          Cluster cut(options);
          REQUIRE(run(cut, 15).ok());
          for (std::size_t rank = 0; rank < kNodes; ++rank) {
            CHECK(same_bits(cut.x[rank], reference.x[rank]));
            CHECK(cut.driver.node(rank).round() == 15);
            CHECK(cut.driver.node(rank).idle());
          }
        }
      }
    }
  }
}

TEST_CASE("buckets with every default compressor: any order of delivery, and they converge") {
  for (const std::string& name : separable()) {
    CAPTURE(name);
    auto options = options_for(name, 3);
    options.step = {.learning_rate = 0.1};
    Cluster eager(options);
    options.delivery = Delivery::late;
    Cluster late(options);
    const Quadratic task(kNodes, kDimension, 3);
    const double before = task.excess(eager.mean());
    REQUIRE(eager.driver.run(150, task).ok());
    REQUIRE(late.driver.run(150, task).ok());
    CHECK(eager.x == late.x);
    CHECK(task.excess(eager.mean()) < 0.05 * before);
    CHECK(eager.node<Bucketed>(0).buckets() == 3);
  }
}

TEST_CASE("buckets within local steps are the same as without, too") {
  for (const std::string& name : separable()) {
    CAPTURE(name);
    auto options = options_for(name, 1);
    options.compressor = "none";
    options.communication_interval = 3;
    Cluster whole(options);
    options.buckets = 3;
    options.delivery = Delivery::late;
    Cluster cut(options);
    REQUIRE(run(whole, 14).ok());
    REQUIRE(run(cut, 14).ok());
    CHECK(cut.x == whole.x);
  }
}

TEST_CASE("further buckets are posted while the first is under way, and each ends by itself") {
  Lone pair("dcd");
  Algorithm& node = *pair.node;
  CHECK(node.peers().frames_a_round == 3);
  node.begin_round();
  REQUIRE(pair.take().empty());
  const std::vector<float> gradient(kDimension, 0.5F);
  REQUIRE(node.take_gradient(gradient).ok());
  auto first = pair.take();
  REQUIRE(first.size() == 3);
  for (std::uint32_t b = 0; b < 3; ++b) {
    CHECK(first[b].tag == ExchangeTag{0, 0, b});
    CHECK(parse_frame(first[b].sends.at(0).frame)->header.bucket == b);
  }
  // DCD's model is there before anything has arrived.
  CHECK(node.parameters_ready());
  CHECK(node.round() == 1);

  // The next gradient is taken; only the first bucket's exchange is done, and that bucket goes.
  std::vector<Exchange> further;
  node.begin_round();
  REQUIRE(pair.take().empty());
  REQUIRE(node.accepts_gradient());
  REQUIRE(node.take_gradient(gradient).ok());
  CHECK(pair.take().empty());
  CHECK_FALSE(node.accepts_gradient());
  pair.finish(first[0], &further);
  REQUIRE(further.size() == 1);
  CHECK(further[0].tag == ExchangeTag{1, 0, 0});
  CHECK_FALSE(node.parameters_ready());
  further.clear();

  // Out of order: the third alone moves nothing, since buckets step in order.
  pair.finish(first[2], &further);
  CHECK(further.empty());
  pair.finish(first[1], &further);
  REQUIRE(further.size() == 2);
  CHECK(further[0].tag == ExchangeTag{1, 0, 1});
  CHECK(further[1].tag == ExchangeTag{1, 0, 2});
  CHECK(node.parameters_ready());
  CHECK(node.round() == 2);
  CHECK_FALSE(node.idle());
}

TEST_CASE("a bucket whose gradient is there steps while others are still in the round before") {
  Lone pair("dcd");
  Algorithm& node = *pair.node;
  node.begin_round();
  REQUIRE(pair.take().empty());
  const std::vector<float> gradient(kDimension, 0.5F);
  REQUIRE(node.take_gradient(gradient).ok());
  const auto first = pair.take();
  REQUIRE(first.size() == 3);
  std::vector<Exchange> further;
  pair.finish(first[2], &further);
  node.begin_round();
  REQUIRE(pair.take().empty());
  REQUIRE(node.accepts_gradient());
  const auto last = std::span(gradient).subspan(2 * kGrain);
  REQUIRE(node.gradient_part(2 * kGrain, last).ok());
  const auto second = pair.take();
  REQUIRE(second.size() == 1);
  CHECK(second[0].tag == ExchangeTag{1, 0, 2});
}

TEST_CASE("a gradient that is not finite changes no bucket, and another may be given") {
  Lone pair("dcd");
  Algorithm& node = *pair.node;
  node.begin_round();
  REQUIRE(pair.take().empty());
  std::vector<float> gradient(kDimension, 0.5F);
  gradient.back() = std::numeric_limits<float>::quiet_NaN();
  const auto before = pair.x;
  const Status refused = node.take_gradient(gradient);
  CHECK(refused.fault() == Fault::non_finite);
  CHECK_MESSAGE(refused.message().find(std::to_string(kDimension - 1)) != std::string::npos,
                refused.message());
  CHECK(pair.take().empty());
  CHECK(pair.x == before);
  gradient.back() = 0.5F;
  REQUIRE(node.take_gradient(gradient).ok());
  CHECK(pair.take().size() == 3);
}

TEST_CASE("a frame of one bucket is refused as that of another, which is named") {
  Lone pair("dcd");
  Algorithm& node = *pair.node;
  node.begin_round();
  REQUIRE(pair.take().empty());
  const std::vector<float> gradient(kDimension, 0.5F);
  REQUIRE(node.take_gradient(gradient).ok());
  const auto posted = pair.take();
  std::vector<std::byte> frame(posted[0].sends.at(0).frame.begin(),
                               posted[0].sends.at(0).frame.end());
  auto header = parse_frame(frame)->header;
  header.sender = 1;
  seal_frame(header, frame);
  const Status status = node.complete(with_frame(posted[1], frame));
  CHECK(status.fault() == Fault::unexpected);
  CHECK_MESSAGE(status.message().find("bucket 1 of 3") != std::string::npos, status.message());
  CHECK(node.counters().bad_frames == 1);
}

TEST_CASE("buckets go into a checkpoint, which other numbers of buckets do not take") {
  for (const std::string& name : separable()) {
    CAPTURE(name);
    const auto options = options_for(name, 3);
    Cluster straight(options);
    REQUIRE(run(straight, 12).ok());
    Cluster first(options);
    REQUIRE(run(first, 5).ok());
    Cluster second(options);
    for (std::size_t rank = 0; rank < kNodes; ++rank) {
      ByteBuffer saved;
      first.driver.node(rank).save(saved);
      second.x[rank].assign(first.x[rank].begin(), first.x[rank].end());
      ByteReader in(saved.bytes());
      const Status loaded = second.driver.node(rank).load(in);
      CHECK_MESSAGE(loaded.ok(), loaded.message());

      auto other = options_for(name, 2);
      std::vector<float> x = first.x[rank];
      auto wrong = make_algorithm(name, node_setup(other, rank, x, cluster_topology(other)));
      ByteReader again(saved.bytes());
      CHECK(wrong->load(again).fault() == Fault::malformed);
    }
    const Quadratic task(kNodes, kDimension, 3, 0.1);
    REQUIRE(second.driver.run(7, task).ok());
    CHECK(second.x == straight.x);
  }
}

TEST_CASE("buckets are refused where the model is taken as a whole") {
  const auto refusal = [](const ClusterOptions& options) -> std::string {
    try {
      const Cluster cluster(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal(options_for("dcd", 0)).find("buckets: '0'") != std::string::npos);
  CHECK(refusal(options_for("dcd", kMostBuckets + 1)).find("1 to 4096") != std::string::npos);
  for (const AlgorithmInfo& info : algorithms()) {
    if (!info.takes_buckets()) {
      CAPTURE(info.name);
      auto options = options_for(info.name, 2);
      options.step.clip_norm = std::numeric_limits<double>::infinity();
      CHECK(refusal(options).find("works on the model as a whole") != std::string::npos);
    }
  }
  auto lowrank = options_for("choco", 2);
  lowrank.compressor = "lowrank:2";
  CHECK(refusal(lowrank).find("each as a whole") != std::string::npos);
}

TEST_CASE("the default number of buckets grows with the model, and is bounded") {
  CHECK(default_buckets(1) == 1);
  CHECK(default_buckets((1U << 19U) - 1) == 1);
  CHECK(default_buckets(1U << 20U) == 4);
  CHECK(default_buckets(std::size_t{1} << 32U) == 64);
}

TEST_CASE("a gradient in parts, in any order, leaves the bits of a whole one") {
  const std::vector<StepRuleOptions> rules = {
      {.learning_rate = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01},
      {.rule = "adam", .learning_rate = 0.01, .weight_decay = 0.1},
      {.rule = "adamw", .learning_rate = 0.01, .weight_decay = 0.1}};
  std::vector<std::pair<std::string, bool>> all;  // and whether gradients are delayed
  for (const std::string& name : separable()) {
    all.emplace_back(name, false);
    if (algorithm_info(name).takes_delayed_gradients()) {
      all.emplace_back(name, true);
    }
  }
  for (const auto& [name, delayed] : all) {
    for (const StepRuleOptions& rule : rules) {
      auto options = options_for(name, 3);
      options.delayed_gradient = delayed;
      options.step = rule;
      Cluster whole(options);
      REQUIRE(run(whole, 8).ok());
      for (const std::uint64_t order : {0U, 1U, 2U, 3U}) {
        CAPTURE(name);
        CAPTURE(delayed);
        CAPTURE(rule.rule);
        CAPTURE(order);
        options.delivery = order % 2 == 0 ? Delivery::eager : Delivery::late;
        Cluster parts(options, [&](std::unique_ptr<Algorithm> inner) {
          REQUIRE(inner->takes_parts());
          return std::make_unique<InParts>(std::move(inner), order);
        });
        REQUIRE(run(parts, 8).ok());
        CHECK(parts.x == whole.x);
      }
    }
  }
}

TEST_CASE("a bucket goes as soon as its gradient is whole, and moves no other's parameters") {
  Lone pair("choco", {.learning_rate = 0.05});
  Algorithm& node = *pair.node;
  REQUIRE(node.takes_parts());
  node.begin_round();
  REQUIRE(pair.take().empty());
  const auto before = pair.x;
  const std::vector<float> gradient(kDimension, 0.5F);
  const auto give = [&](std::size_t first, std::size_t end) {
    REQUIRE(node.gradient_part(first, std::span(gradient).subspan(first, end - first)).ok());
    return pair.take();
  };
  CHECK(give(kDimension - 30, kDimension).empty());
  CHECK_FALSE(node.parameters_ready());
  CHECK_FALSE(node.accepts_gradient());
  const auto last = give(kGrain + 1, kDimension - 30);
  REQUIRE(last.size() == 1);
  CHECK(last[0].tag == ExchangeTag{0, 0, 2});
  std::vector<Exchange> further;
  pair.finish(last[0], &further);
  CHECK(further.empty());
  const auto moved = std::ranges::mismatch(pair.x, before).in1 - pair.x.begin();
  CHECK(moved == 2 * static_cast<std::ptrdiff_t>(kGrain));
  CHECK(node.round() == 0);
  const auto rest = give(0, kGrain + 1);
  REQUIRE(rest.size() == 2);
  for (const Exchange& exchange : rest) {
    pair.finish(exchange, &further);
  }
  CHECK(node.round() == 1);
  CHECK(node.idle());
}

TEST_CASE("a part that is not finite changes nothing, and may be given again") {
  const StepRuleOptions rule{.rule = "adam", .learning_rate = 0.01};
  Lone refused("choco", rule);
  Lone clean("choco", rule);
  std::vector<float> gradient(kDimension, 0.5F);
  const auto bad = std::vector<float>(10, std::numeric_limits<float>::infinity());
  for (Lone* pair : {&refused, &clean}) {
    Algorithm& node = *pair->node;
    node.begin_round();
    REQUIRE(pair->take().empty());
    if (pair == &refused) {
      const Status status = node.gradient_part(7, bad);
      CHECK(status.fault() == Fault::non_finite);
      CHECK_MESSAGE(status.message().find("parameter 7") != std::string::npos, status.message());
      CHECK(node.accepts_gradient());
    }
    REQUIRE(node.gradient_part(0, {}).ok());
    CHECK(node.accepts_gradient());
    REQUIRE(node.gradient_part(0, std::span(gradient).first(20)).ok());
    CHECK(node.gradient_part(20, bad).fault() == Fault::non_finite);
    REQUIRE(node.gradient_part(20, std::span(gradient).subspan(20)).ok());
    std::vector<Exchange> further;
    for (const Exchange& exchange : pair->take()) {
      pair->finish(exchange, &further);
    }
  }
  CHECK(refused.x == clean.x);
}

TEST_CASE("what takes the gradient whole takes no parts") {
  const auto takes = [](const StepRuleOptions& rule, std::uint32_t buckets) {
    Lone pair("dcd", rule, buckets);
    return pair.node->takes_parts();
  };
  CHECK(takes({}, 3));
  CHECK_FALSE(takes({}, 1));
  CHECK_FALSE(takes({.clip_norm = 1}, 3));
  CHECK_FALSE(takes({.rule = "adam", .clip_norm = 1}, 3));
  CHECK_FALSE(takes({.rule = "lars"}, 3));
  CHECK_FALSE(takes({.rule = "lamb"}, 3));
  Lone whole("dcd", {}, 1);
  CHECK(whole.node->gradient_part(0, whole.x).fault() == Fault::unexpected);
}

}  // namespace sotto::test::bucketed_test

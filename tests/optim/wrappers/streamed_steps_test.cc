// Local steps whose exchange is cut into fragments and delayed.
#include <sotto/optim/wrappers/streamed_steps.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/base/names.h>
#include <sotto/optim/wrappers/local_steps.h>

#include "optim/cluster.h"
#include "optim/saved_state.h"

namespace sotto::test::streamed_steps_test {

namespace {

constexpr std::size_t kNodes = 4;
constexpr std::size_t kDimension = 41;

std::uint64_t draw_seed(std::uint32_t number) {
  RandomStream stream({.seed = 2501'18512, .round = number, .purpose = Purpose::test});
  return stream.next_u64() >> 40U;
}

ClusterOptions options_for(std::string algorithm, Round interval, const Streaming& streaming,
                           std::uint64_t seed) {
  return {.algorithm = std::move(algorithm),
          .nodes = kNodes,
          .dimension = kDimension,
          .step = {.learning_rate = 0.05},
          .communication_interval = interval,
          .outer_step = StepRuleOptions{.learning_rate = 0.7, .momentum = 0.9, .nesterov = true},
          .streaming = streaming,
          .seed = seed};
}

std::vector<std::string> streaming_algorithms() {
  return names_with(algorithms(), &AlgorithmInfo::takes_fragments);
}

/// Fragments, delays and mixes for an interval of 7.
std::vector<Streaming> streamings() {
  return {{.fragments = 1, .delay = 3},
          {.fragments = 1, .delay = 6, .mix = {.carry = true}},
          {.fragments = 3},
          {.fragments = 3, .delay = 1, .mix = {.own = 0.5}},
          {.fragments = 3, .delay = 1, .mix = {.carry = true}},
          {.fragments = 7, .mix = {.own = 0.25}},
          {.fragments = 2, .delay = 2}};
}
constexpr Round kInterval = 7;

/// The rule in double precision, over allreduce with Nesterov's momentum as outer rule.
class Reference {
 public:
  Reference(const ClusterOptions& options, std::span<const float> start)
      : options_(options),
        common_(start.begin(), start.end()),
        velocity_(start.size()),
        models_(options.nodes, common_),
        sent_(options.nodes),
        moved_(options.nodes) {}

  void run(Round rounds, const Quadratic& task) {
    for (const Round end = steps_ + rounds; steps_ < end;) {
      step(task);
      ++steps_;
      const Round delay = options_.streaming.delay;
      if (delay > 0 && steps_ > delay) {
        apply(steps_ - delay);
      }
      send();
      if (delay == 0) {
        apply(steps_);
      }
    }
  }
  const std::vector<double>& model(std::size_t rank) const { return models_[rank]; }

 private:
  /// Whether an element's fragment is sent after so many steps.
  bool due(std::size_t element, Round steps) const {
    const auto count = static_cast<int>(options_.streaming.fragments);
    const Round of_interval = (steps - 1) % options_.communication_interval + 1;
    for (int p = 0; p < count; ++p) {
      const Chunk chunk = chunk_of(common_.size(), count, p);
      if (element >= chunk.offset && element < chunk.offset + chunk.size) {
        const auto next = static_cast<Round>(p) + 1;
        return next * options_.communication_interval / options_.streaming.fragments == of_interval;
      }
    }
    return false;
  }
  void step(const Quadratic& task) {
    std::vector<float> g(common_.size());
    for (std::size_t i = 0; i < models_.size(); ++i) {
      const std::vector<float> x(models_[i].begin(), models_[i].end());
      task(static_cast<Rank>(i), steps_, x, g);
      for (std::size_t k = 0; k < x.size(); ++k) {
        models_[i][k] -= options_.step.learning_rate * static_cast<double>(g[k]);
      }
    }
  }
  void send() {
    for (std::size_t i = 0; i < models_.size(); ++i) {
      sent_[i].resize(common_.size());
      moved_[i].resize(common_.size());
      for (std::size_t k = 0; k < common_.size(); ++k) {
        if (due(k, steps_)) {
          sent_[i][k] = models_[i][k];
          moved_[i][k] = common_[k] - models_[i][k];
        }
      }
    }
  }
  void apply(Round sent) {
    const StepRuleOptions& outer = *options_.outer_step;
    for (std::size_t k = 0; k < common_.size(); ++k) {
      if (!due(k, sent)) {
        continue;
      }
      double mean = 0;
      for (const auto& moved : moved_) {
        mean += moved[k] / static_cast<double>(moved_.size());
      }
      velocity_[k] = outer.momentum * velocity_[k] + mean;
      common_[k] -= outer.learning_rate * (mean + outer.momentum * velocity_[k]);
      for (std::size_t i = 0; i < models_.size(); ++i) {
        double& x = models_[i][k];
        const double own = options_.streaming.mix.own;
        x = options_.streaming.mix.carry ? x + common_[k] - sent_[i][k]
                                         : own * x + (1 - own) * common_[k];
      }
    }
  }

  const ClusterOptions options_;
  std::vector<double> common_;
  std::vector<double> velocity_;
  std::vector<std::vector<double>> models_;
  std::vector<std::vector<double>> sent_;
  std::vector<std::vector<double>> moved_;
  Round steps_ = 0;
};

}  // namespace

TEST_CASE("streamed steps follow the rule, with any fragments, delay and mix") {
  std::uint32_t number = 0;
  for (const Streaming& streaming : streamings()) {
    const std::uint64_t seed = draw_seed(number++);
    CAPTURE(streaming.fragments);
    CAPTURE(streaming.delay);
    CAPTURE(sync_mix_text(streaming.mix));
    CAPTURE(seed);
    const auto options = options_for("allreduce", kInterval, streaming, seed);
    Cluster cluster(options);
    Reference reference(options, cluster.x[0]);
    const Quadratic task(kNodes, kDimension, seed, 0.2);
    for (const Round rounds : {Round{1}, Round{9}, Round{26}}) {
      REQUIRE(cluster.driver.run(rounds, task).ok());
      reference.run(rounds, task);
      for (std::size_t i = 0; i < kNodes; ++i) {
        for (std::size_t k = 0; k < kDimension; ++k) {
          REQUIRE(static_cast<double>(cluster.x[i][k]) ==
                  doctest::Approx(reference.model(i)[k]).epsilon(2e-5));
        }
      }
    }
  }
}

TEST_CASE("one fragment without a delay is local steps, to the bit") {
  for (const std::string& algorithm : streaming_algorithms()) {
    for (const Round rounds : {Round{3}, Round{21}, Round{40}}) {
      const std::uint64_t seed = draw_seed(100);
      CAPTURE(algorithm);
      CAPTURE(rounds);
      CAPTURE(seed);
      Cluster local(options_for(algorithm, kInterval, {}, seed));
      Cluster streamed(options_for(algorithm, kInterval, {.mix = {.carry = true}}, seed));
      REQUIRE(dynamic_cast<const LocalSteps*>(&local.driver.node(0)) != nullptr);
      REQUIRE(dynamic_cast<const StreamedSteps*>(&streamed.driver.node(0)) != nullptr);
      const Quadratic task(kNodes, kDimension, seed, 0.2);
      REQUIRE(local.driver.run(rounds, task).ok());
      REQUIRE(streamed.driver.run(rounds, task).ok());
      CHECK(local.x == streamed.x);
    }
  }
}

TEST_CASE("a node alone, with an outer rate of 1, trains plainly unless its steps are dropped") {
  const std::uint64_t seed = draw_seed(200);
  CAPTURE(seed);
  for (const Streaming& streaming : streamings()) {
    CAPTURE(streaming.fragments);
    CAPTURE(streaming.delay);
    CAPTURE(sync_mix_text(streaming.mix));
    auto options = options_for("allreduce", kInterval, streaming, seed);
    options.nodes = 1;
    options.outer_step = StepRuleOptions{.learning_rate = 1};
    Cluster streamed(options);
    options.streaming = {};
    options.communication_interval = 1;
    options.outer_step = {};
    Cluster plain(options);
    const Quadratic task(1, kDimension, seed, 0.2);
    REQUIRE(streamed.driver.run(30, task).ok());
    REQUIRE(plain.driver.run(30, task).ok());
    const double gap = largest_gap(streamed.x[0], plain.x[0]);
    if (streaming.delay == 0 || streaming.mix.carry) {
      CHECK(gap < 2e-6);
    } else {
      CHECK(gap > 1e-2);
    }
  }
}

TEST_CASE("fragments are equal at all nodes to the bit, whenever messages come") {
  std::uint32_t number = 300;
  for (const std::string& algorithm : streaming_algorithms()) {
    for (const Streaming& streaming : streamings()) {
      for (const std::size_t nodes : {std::size_t{1}, std::size_t{2}, std::size_t{5}}) {
        const std::uint64_t seed = draw_seed(number++);
        CAPTURE(algorithm);
        CAPTURE(streaming.fragments);
        CAPTURE(streaming.delay);
        CAPTURE(sync_mix_text(streaming.mix));
        CAPTURE(nodes);
        CAPTURE(seed);
        auto options = options_for(algorithm, kInterval, streaming, seed);
        options.nodes = nodes;
        options.outer_step = StepRuleOptions{.learning_rate = 0.7};
        Cluster eager(options);
        options.delivery = Delivery::late;
        Cluster late(options);
        const Quadratic task(nodes, kDimension, seed, 0.1);
        for (const Round rounds : {Round{5}, Round{18}, Round{1}}) {
          const Status status = eager.driver.run(rounds, task);
          REQUIRE_MESSAGE(status.ok(), status.message());
          const Status other = late.driver.run(rounds, task);
          REQUIRE_MESSAGE(other.ok(), other.message());
          CHECK(eager.x == late.x);
          const auto& first = eager.node<StreamedSteps>(0);
          for (std::size_t i = 0; i < nodes; ++i) {
            const auto& node = eager.node<StreamedSteps>(i);
            CHECK(node.idle());
            CHECK(node.counters().bad_frames == 0);
            for (std::size_t p = 0; p < node.fragments(); ++p) {
              CHECK(same_bits(node.inner(p).parameters(), first.inner(p).parameters()));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a fragment is applied at its step, never sooner, and a gradient waits for it") {
  const Streaming streaming{.fragments = 2, .delay = 2};
  Cluster cluster(options_for("qmean", 6, streaming, 1));
  auto& node = dynamic_cast<StreamedSteps&>(cluster.driver.node(0));
  const std::vector<float> gradient(kDimension, 0.1F);
  Exchange exchange;
  const auto step = [&] {
    node.begin_round();
    REQUIRE(node.accepts_gradient());
    REQUIRE(node.take_gradient(gradient).ok());
  };
  for (int steps = 1; steps < 3; ++steps) {
    step();
    CHECK_FALSE(*node.next_exchange(exchange));
    CHECK(node.idle());
  }
  step();  // after the third step fragment 0 is sent
  CHECK(node.under_way() == std::size_t{0});
  CHECK(node.parameters_ready());
  CHECK_FALSE(node.idle());
  REQUIRE(*node.next_exchange(exchange));
  CHECK(exchange.tag.bucket == 0);
  CHECK_FALSE(*node.next_exchange(exchange));
  step();  // the fourth goes on meanwhile
  node.begin_round();
  CHECK_FALSE(node.accepts_gradient());  // the fifth would apply what is not there
}

TEST_CASE("a run saved anywhere, also with a fragment under way, continues to the bit") {
  std::uint32_t number = 400;
  for (const std::string& algorithm : streaming_algorithms()) {
    for (const Streaming& streaming : streamings()) {
      for (Round stop = 1; stop <= 2 * kInterval; ++stop) {
        const std::uint64_t seed = draw_seed(number++);
        CAPTURE(algorithm);
        CAPTURE(streaming.fragments);
        CAPTURE(streaming.delay);
        CAPTURE(sync_mix_text(streaming.mix));
        CAPTURE(stop);
        CAPTURE(seed);
        auto options = options_for(algorithm, kInterval, streaming, seed);
        options.step = {.rule = "adam", .learning_rate = 0.01};
        Cluster whole(options);
        const Quadratic task(kNodes, kDimension, seed, 0.2);
        REQUIRE(whole.driver.run(33, task).ok());
        Cluster first(options);
        REQUIRE(first.driver.run(stop, task).ok());
        Cluster second(options);
        second.x = first.x;
        for (std::size_t rank = 0; rank < kNodes; ++rank) {
          const auto bytes = saved(first.driver.node(rank));
          ByteReader in(bytes);
          const Status status = second.driver.node(rank).load(in);
          REQUIRE_MESSAGE(status.ok(), status.message());
          CHECK(in.finished());
          CHECK(saved(second.driver.node(rank)) == bytes);
        }
        const Status status = second.driver.run(33 - stop, task);
        REQUIRE_MESSAGE(status.ok(), status.message());
        CHECK(second.x == whole.x);
      }
    }
  }
}

TEST_CASE("a checkpoint of streamed steps that is damaged or of other fragments is refused") {
  const Streaming streaming{.fragments = 3, .delay = 1};
  const auto options = options_for("sparseloco", kInterval, streaming, 5);
  Cluster cluster(options);
  REQUIRE(cluster.driver.run(5, Quadratic(kNodes, kDimension, 5)).ok());
  const auto bytes = saved(cluster.driver.node(0));
  const auto message = [&](const Streaming& other, std::span<const std::byte> state) {
    Cluster fresh(options_for("sparseloco", kInterval, other, 5));
    ByteReader in(state);
    return fresh.driver.node(0).load(in).message();
  };
  CHECK(message(streaming, bytes).empty());
  CHECK(message({.fragments = 2, .delay = 1}, bytes).find("3 fragments") != std::string::npos);
  CHECK(message({.fragments = 3}, bytes).find("a delay of 1 where") != std::string::npos);
  for (std::size_t size = 0; size < bytes.size(); size += 3) {
    CAPTURE(size);
    CHECK_FALSE(message(streaming, std::span(bytes).first(size)).empty());
  }
  RandomStream random({.seed = 8, .purpose = Purpose::test});
  for (int i = 0; i < 300; ++i) {
    auto damaged = bytes;
    const auto bit = random.below(8 * damaged.size());
    damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    (void)message(streaming, damaged);  // refused or loaded, and never more than that
  }
}

TEST_CASE("fragments send what local steps do, and at a time 1/P of it") {
  constexpr std::size_t kLong = 12'000;
  constexpr Round kRounds = 24;
  auto options = options_for("allreduce", 6, {}, 7);
  options.dimension = kLong;
  Cluster whole(options);
  options.streaming = {.fragments = 3, .delay = 1};
  Cluster streamed(options);
  const Quadratic task(kNodes, kLong, 7);
  REQUIRE(whole.driver.run(kRounds, task).ok());
  REQUIRE(streamed.driver.run(kRounds, task).ok());
  const std::size_t headers = 2 * (kNodes - 1) * (kRounds / 6) * kFrameHeaderBytes;
  CHECK(streamed.driver.bytes_sent(1) - 3 * headers == whole.driver.bytes_sent(1) - headers);
  CHECK(streamed.driver.node(0).peers().max_frame_bytes - kFrameHeaderBytes ==
        (whole.driver.node(0).peers().max_frame_bytes - kFrameHeaderBytes) / 3);
}

TEST_CASE("streamed steps: what is not finite is named by node and round, and another may come") {
  const Streaming streaming{.fragments = 2, .delay = 1};
  for (Round when = 4; when < 11; ++when) {
    CAPTURE(when);
    const auto faulty = [&](float value) {
      return [=](Rank rank, Round round, std::span<const float>, std::span<float> g) {
        std::fill(g.begin(), g.end(), 0.1F);
        if (rank == 2 && round == when) {
          g[3] = value;
        }
      };
    };
    const std::string place = "node 2, round " + std::to_string(when);
    Cluster nan(options_for("allreduce", 6, streaming, 1));
    Status status = nan.driver.run(14, faulty(std::nanf("")));
    CHECK(status.fault() == Fault::non_finite);
    CHECK(status.message().find(place + ": the gradient has 1 elements") == 0);
    auto options = options_for("allreduce", 6, streaming, 1);
    options.step.learning_rate = 1e3;
    Cluster overflow(options);
    status = overflow.driver.run(14, faulty(3e38F));
    CHECK(status.fault() == Fault::non_finite);
    CHECK(status.message().find(place + ": the ") == 0);
    for (const float value : overflow.x[2]) {
      CHECK(std::isfinite(value));
    }
  }
}

TEST_CASE("streamings that cannot be are refused, and the message says what would do") {
  const auto refusal = [](const ClusterOptions& options) -> std::string {
    std::vector<float> x(options.dimension);
    try {
      (void)make_algorithm(spec_of(options), node_setup(options, 0, x, cluster_topology(options)));
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  };
  const auto told = [&](std::string_view expected, const ClusterOptions& options) {
    const std::string message = refusal(options);
    CAPTURE(message);
    CHECK(message.find(expected) != std::string::npos);
  };
  CHECK(refusal(options_for("allreduce", 6, {.fragments = 3, .delay = 1}, 1)).empty());
  told("take 1 at most", options_for("allreduce", 6, {.fragments = 3, .delay = 2}, 1));
  told("take 5 at most", options_for("allreduce", 6, {.delay = 6}, 1));
  told("an interval has 6 steps", options_for("allreduce", 6, {.fragments = 7}, 1));
  told("fragments: '0'", options_for("allreduce", 6, {.fragments = 0}, 1));
  told("communication_interval", options_for("allreduce", 1, {.fragments = 2}, 1));
  told("allreduce, qmean, sharded or sparseloco", options_for("dcd", 6, {.fragments = 3}, 1));
  told("sync_mix", options_for("allreduce", 6, {.mix = {.own = 1}}, 1));
  told("sync_mix", options_for("allreduce", 6, {.mix = {.own = 1 - 1e-12}}, 1));
  told("sync_delay: dcd", options_for("dcd", 6, {.delay = 3}, 1));
  told("4096 at most", options_for("allreduce", 10'000, {.fragments = 5'000}, 1));
  for (const std::string rule : {"lars", "sgd; 1d=adam"}) {
    auto by_tensor = options_for("allreduce", 6, {.fragments = 2}, 1);
    by_tensor.outer_step = StepRuleOptions{.rule = rule, .learning_rate = 0.7};
    told("fragments are not along them", by_tensor);
  }
  auto options = options_for("qmean", 6, {.fragments = 2}, 1);
  options.compressor = "lowrank:2";
  told("each as a whole", options);
  options = options_for("allreduce", 60, {.fragments = 50}, 1);
  told("41 parameters", options);
  options = options_for("allreduce", 6, {.fragments = 2}, 1);
  options.buckets = 2;
  told("buckets", options);
  for (const std::string text : {"carry", "0", "0.5"}) {
    CHECK(sync_mix_text(parse_sync_mix(text)) == text);
  }
  for (const std::string text : {"", "1", "-0.1", "nan", "Carry", "0.99999999999", "1e400"}) {
    CAPTURE(text);
    CHECK_THROWS_AS((void)parse_sync_mix(text), Error);
  }
}

TEST_CASE("a fragment is sent in its turn, whatever the interval's length") {
  for (std::uint32_t count = 1; count <= 12; ++count) {
    const Streaming streaming = {.fragments = count};
    for (Round interval = count; interval <= 60; ++interval) {
      for (std::uint32_t p = 0; p < count; ++p) {
        CHECK(streaming.sent_after(interval, p) == (Round{p} + 1) * interval / count);
      }
    }
  }
  constexpr Round kLong = Round{1} << 63U;
  CHECK(Streaming{.fragments = 2}.sent_after(kLong, 1) == kLong);
  CHECK(Streaming{.fragments = 2}.sent_after(kLong, 0) == kLong / 2);
}

}  // namespace sotto::test::streamed_steps_test

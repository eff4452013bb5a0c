// A run that was saved and loaded continues as if nothing had happened; damaged state is refused.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>

#include "optim/cluster.h"
#include "optim/saved_state.h"

namespace sotto::test::checkpoint_test {

namespace {

Status load(Algorithm& algorithm, std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Status status = algorithm.load(in);
  if (status) {
    CHECK(in.finished());
  }
  return status;
}

/// 100 rounds at once, and 71 of which the state is handed to other objects for the rest.
void check_continues(const ClusterOptions& options) {
  const Quadratic task(5, options.dimension, 3, 0.2);
  Cluster whole(options);
  REQUIRE(whole.driver.run(100, task).ok());

  Cluster first(options);
  REQUIRE(first.driver.run(71, task).ok());
  Cluster second(options);
  second.x = first.x;
  for (std::size_t rank = 0; rank < 5; ++rank) {
    const auto bytes = saved(first.driver.node(rank));
    const Status status = load(second.driver.node(rank), bytes);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    CHECK(second.driver.node(rank).round() == 71);
    CHECK(saved(second.driver.node(rank)) == bytes);
  }
  REQUIRE(second.driver.run(29, task).ok());
  CHECK(second.x == whole.x);
}

}  // namespace

TEST_CASE("every algorithm, saved in mid-run and loaded, continues to the bit") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const StepRuleOptions& step : {StepRuleOptions{.learning_rate = 0.02, .momentum = 0.9},
                                        StepRuleOptions{.rule = "adam", .learning_rate = 0.01}}) {
      CAPTURE(info.name);
      CAPTURE(step.rule);
      check_continues(
          {.algorithm = std::string(info.name), .nodes = 5, .dimension = 33, .step = step});
    }
  }
}

TEST_CASE("a rule that follows the model, saved in mid-run and loaded, continues to the bit") {
  for (const AlgorithmInfo& info : algorithms()) {
    if (!info.takes_following_rules()) {
      continue;
    }
    for (const Round interval : {Round{1}, Round{3}}) {  // saved between two exchanges
      CAPTURE(info.name);
      CAPTURE(interval);
      check_continues({.algorithm = std::string(info.name),
                       .nodes = 5,
                       .dimension = 33,
                       .step = {.rule = "quasi-global", .learning_rate = 0.01, .momentum = 0.9},
                       .communication_interval = interval});
    }
  }
}

TEST_CASE(
    "rules by tensor, saved in mid-run and loaded, continue to the bit with every algorithm") {
  ParameterLayout layout;
  append_block(layout, "hidden", {4, 6});
  append_block(layout, "bias", {9});
  for (const AlgorithmInfo& info : algorithms()) {
    if (!info.step_rules.only.empty() || info.step_rules.by_element) {
      continue;
    }
    for (const Round interval : {Round{1}, Round{3}}) {
      CAPTURE(info.name);
      CAPTURE(interval);
      check_continues(
          {.algorithm = std::string(info.name),
           .nodes = 5,
           .dimension = 33,
           .step = {.rule = "muon", .learning_rate = 0.02, .momentum = 0.95, .nesterov = true},
           .communication_interval = interval,
           .layout = layout});
    }
  }
}

TEST_CASE("what a compressor remembers is part of the state") {
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.contract != ContractKind::contraction) {
      continue;
    }
    CAPTURE(info.name);
    check_continues({.algorithm = std::string(info.name),
                     .compressor = "lowrank:1",
                     .nodes = 5,
                     .dimension = 130,
                     .step = {.learning_rate = 0.02}});
  }
}

TEST_CASE("what the second compressor of sharded remembers is part of the state") {
  check_continues({.algorithm = "sharded:gather=lowrank:1",
                   .nodes = 5,
                   .dimension = 133,
                   .step = {.rule = "adamw", .learning_rate = 0.01, .weight_decay = 0.1}});
}

TEST_CASE("all-reduce in buckets, saved in mid-run and loaded, continues to the bit") {
  check_continues({.algorithm = "allreduce",
                   .nodes = 5,
                   .dimension = 2 * 4096 + 37,
                   .step = {.learning_rate = 0.1, .momentum = 0.9},
                   .buckets = 3});
}

TEST_CASE("a checkpoint that is cut short anywhere is refused") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    const ClusterOptions options{
        .algorithm = std::string(info.name), .nodes = 3, .dimension = 5, .step = {.momentum = 0.9}};
    Cluster cluster(options);
    REQUIRE(cluster.driver.run(2, Quadratic(3, 5, 3)).ok());
    const auto bytes = saved(cluster.driver.node(0));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      CAPTURE(size);
      Cluster other(options);
      CHECK_FALSE(load(other.driver.node(0), std::span(bytes).first(size)).ok());
    }
  }
}

TEST_CASE("a checkpoint with flipped bits is refused or loaded, and never more than that") {
  RandomStream random({.seed = 8, .purpose = Purpose::test});
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    const ClusterOptions options{
        .algorithm = std::string(info.name), .nodes = 3, .dimension = 5, .step = {.rule = "adam"}};
    Cluster cluster(options);
    REQUIRE(cluster.driver.run(2, Quadratic(3, 5, 3)).ok());
    const auto bytes = saved(cluster.driver.node(0));
    for (int i = 0; i < 300; ++i) {
      auto damaged = bytes;
      const auto bit = random.below(8 * damaged.size());
      damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      Cluster other(options);
      ByteReader in(damaged);
      const Status status = other.driver.node(0).load(in);
      CHECK((status.ok() || status.fault() == Fault::malformed ||
             status.fault() == Fault::non_finite));
    }
  }
}

TEST_CASE("a checkpoint of another run's shape is refused, and the message says what differs") {
  const ClusterOptions options{.algorithm = "dcd", .nodes = 3, .dimension = 5};
  const auto bytes = saved(Cluster(options).driver.node(0));
  const auto message = [&](auto change, std::size_t rank = 0) {
    ClusterOptions other = options;
    change(other);
    Cluster cluster(other);
    return load(cluster.driver.node(rank), bytes).message();
  };
  using Options = ClusterOptions&;
  CHECK(message([](Options) {}).empty());
  CHECK(message([](Options o) { o.algorithm = "choco"; }) ==
        "checkpoint of algorithm 'dcd' where 'choco' is used");
  CHECK(message([](Options o) { o.compressor = "quant:4"; }).find("compressor 'quant:8") !=
        std::string::npos);
  CHECK(message([](Options o) { o.dimension = 6; }).find("5 parameters") != std::string::npos);
  CHECK(message([](Options o) { o.nodes = 4; }).find("node 0 of 3") != std::string::npos);
  CHECK(message([](Options) {}, 1).find("where node 1 of 3") != std::string::npos);
  CHECK(message([](Options o) { o.step.rule = "adam"; }) ==
        "checkpoint of step rule 'sgd' where 'adam' is used");
  CHECK(message([](Options o) { o.step.momentum = 0.5; }).find("momentum") != std::string::npos);
}

}  // namespace sotto::test::checkpoint_test

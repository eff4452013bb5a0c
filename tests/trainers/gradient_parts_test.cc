// Gradients that an optimizer is given in parts.
#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/trainers/optimizer.h>

#include "trainers/nodes.h"

namespace sotto::test::gradient_parts_test {

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kLong = 3 * 4096;

using Models = std::vector<std::vector<float>>;

/// Pulls node i towards i.
void pull(Rank rank, Round /*round*/, std::span<const float> x, std::span<float> gradient) {
  std::ranges::transform(x, gradient.begin(),
                         [&](float value) { return value - static_cast<float>(rank); });
}

OptimizerOptions bucket_options(const std::string& algorithm) {
  auto options = options_for(kNodes, make_memory_store());
  options.algorithm = algorithm;
  options.buckets = 3;
  options.lazy = algorithm_info(algorithm).eigenvalues_above > -1;
  return options;
}

/// One node, whose gradients come in parts of 1000, the last part first.
Status train_in_parts(OptimizerOptions options, Rank rank, Round rounds, std::vector<float>& x) {
  options.rank = rank;
  Optimizer optimizer(options, x);
  std::vector<float> gradient(x.size());
  while (optimizer.round() < rounds) {
    if (Status status = optimizer.begin_step(); !status.ok()) {
      return status;
    }
    for (std::size_t end = x.size(); end > 0;) {
      const std::size_t first = end - std::min<std::size_t>(end, 1000);
      const auto part = std::span(gradient).subspan(first, end - first);
      pull(rank, optimizer.round(), optimizer.parameters().subspan(first, end - first), part);
      if (Status status = optimizer.gradient_part(first, part); !status.ok()) {
        return status;
      }
      end = first;
    }
    if (Status status = optimizer.step(); !status.ok()) {
      return status;
    }
  }
  return optimizer.finish();
}

}  // namespace

TEST_CASE("gradients in parts leave the bits of whole ones, with overlap and without") {
  for (const std::string words : {"dpsgd", "dcd", "ecd", "choco", "deepsqueeze", "pushsum",
                                  "delayed choco", "delayed deepsqueeze", "delayed pushsum"}) {
    for (const bool overlap : {false, true}) {
      CAPTURE(words);
      CAPTURE(overlap);
      const bool delayed = words.starts_with("delayed ");
      auto options = bucket_options(delayed ? words.substr(8) : words);
      options.delayed_gradient = delayed;
      options.overlap = overlap;
      Models whole(kNodes, std::vector<float>(kLong));
      Models parts = whole;
      for (const Status& status : play(kNodes, [&](Rank rank) {
             return train(options, rank, 12, pull, whole[static_cast<std::size_t>(rank)]);
           })) {
        REQUIRE_MESSAGE(status.ok(), status.message());
      }
      options.store = make_memory_store();
      for (const Status& status : play(kNodes, [&](Rank rank) {
             return train_in_parts(options, rank, 12, parts[static_cast<std::size_t>(rank)]);
           })) {
        REQUIRE_MESSAGE(status.ok(), status.message());
      }
      CHECK(parts == whole);
    }
  }
}

TEST_CASE("with parts a bucket is sent before the gradient is whole") {
  auto options = bucket_options("choco");
  Models x(kNodes, std::vector<float>(kLong));
  const auto statuses = play(kNodes, [&](Rank rank) -> Status {
    auto mine = options;
    mine.rank = rank;
    Optimizer optimizer(mine, x[static_cast<std::size_t>(rank)]);
    const std::vector<float> gradient(kLong, 1);
    const auto g = std::span(gradient);
    if (Status status = optimizer.gradient_part(8192, g.subspan(8192)); !status.ok()) {
      return status;
    }
    CHECK(optimizer.standing().traffic[0].frames == 1);
    if (Status status = optimizer.gradient_part(0, g.first(8192)); !status.ok()) {
      return status;
    }
    CHECK(optimizer.standing().traffic[0].frames == 3);
    Status status = optimizer.step();
    CHECK(optimizer.round() == 1);
    return status.ok() ? optimizer.finish() : status;
  });
  for (const Status& status : statuses) {
    CHECK_MESSAGE(status.ok(), status.message());
  }
}

TEST_CASE("bad input: parts of gradients that do not fit, are missing or come twice") {
  auto options = options_for(1, make_memory_store());
  options.algorithm = "choco";
  options.buckets = 3;
  std::vector<float> x(kLong);
  Optimizer optimizer(options, x);
  const std::vector<float> g(kLong, 1);
  const auto says = [&](const auto& call, std::string_view what) {
    try {
      const Status status = call();
      FAIL_CHECK("no error: " << what << "; " << status.message());
    } catch (const Error& error) {
      CHECK_MESSAGE(std::string_view(error.what()).find(what) != std::string_view::npos,
                    error.what());
    }
  };
  const auto part = [&](std::size_t first, std::size_t count) {
    return optimizer.gradient_part(first, std::span(g).first(count));
  };
  says([&] { return optimizer.step(); }, "gradient: '0 elements'");
  says([&] { return part(kLong, 1); }, "there are 12288 parameters");
  says([&] { return part(std::size_t(0) - 1, 2); }, "there are 12288 parameters");
  REQUIRE(part(100, 50).ok());
  for (const auto& [first, count] :
       {std::pair<std::size_t, std::size_t>{100, 50}, {149, 1}, {60, 41}, {0, kLong}}) {
    says([&, at = first, many = count] { return part(at, many); }, "in another part");
  }
  says([&] { return optimizer.step(g); }, "parts of it were given");
  says([&] { return optimizer.finish(); }, "parts of it were given");
  REQUIRE(optimizer.drain().ok());
  ByteBuffer state;
  says(
      [&] {
        optimizer.save(state);
        return Status();
      },
      "parts of it were given");
  says([&] { return optimizer.step(); }, "gradient: '50 elements'");
  REQUIRE(part(0, 100).ok());
  auto bad = g;
  bad[5] = std::numeric_limits<float>::infinity();
  CHECK(optimizer.gradient_part(150, std::span(bad).first(kLong - 150)).fault() ==
        Fault::non_finite);
  REQUIRE(part(150, kLong - 150).ok());
  REQUIRE(optimizer.step().ok());
  REQUIRE(optimizer.step(g).ok());
  CHECK(optimizer.round() == 2);

  options.buckets = 1;
  options.store = make_memory_store();
  Optimizer whole(options, x);
  says([&] { return whole.gradient_part(0, g); }, "takes gradients whole");
}

TEST_CASE("step rules by tensor of which each goes by elements take parts that cut tensors") {
  auto options = options_for(1, make_memory_store());
  options.algorithm = "choco";
  options.buckets = 3;
  options.step_rule.rule = "sgd; 1d=adam";
  ParameterLayout layout;
  append_block(layout, "weight", {96, 96});
  append_block(layout, "bias", {kLong - 96 * 96});
  const auto trained = [&](std::size_t cut) {
    std::vector<float> x(kLong);
    std::vector<float> g(kLong, 1);
    options.store = make_memory_store();
    Optimizer optimizer(options, x, layout);
    for (int round = 0; round < 4; ++round) {
      REQUIRE(optimizer.gradient_part(cut, std::span(g).subspan(cut)).ok());
      REQUIRE(optimizer.gradient_part(0, std::span(g).first(cut)).ok());
      REQUIRE(optimizer.step().ok());
    }
    return x;
  };
  const auto whole = trained(96 * 96);
  CHECK(whole[0] != whole[kLong - 1]);
  CHECK(trained(1000) == whole);
  CHECK(trained(kLong - 1) == whole);
}

TEST_CASE("bad input: a part that cuts a tensor, with a step rule that takes whole ones") {
  auto options = options_for(1, make_memory_store());
  options.algorithm = "choco";
  options.buckets = 3;
  options.step_rule.rule = "muon";
  ParameterLayout layout;
  append_block(layout, "first", {64, 96});
  append_block(layout, "second", {96, 64});
  std::vector<float> x(kLong);
  const std::vector<float> g(kLong, 1);
  Optimizer optimizer(options, x, layout);
  REQUIRE(optimizer.takes_parts());
  const auto part = [&](std::size_t first, std::size_t count) {
    return optimizer.gradient_part(first, std::span(g).first(count));
  };
  CHECK_THROWS_WITH_AS(part(0, 96), doctest::Contains("it cuts the tensor first,"), Error);
  CHECK_THROWS_WITH_AS(part(0, kLong - 1), doctest::Contains("cuts the tensor second,"), Error);
  CHECK_THROWS_WITH_AS(part(kLong / 2 + 1, 1), doctest::Contains("second"), Error);
  CHECK(part(kLong / 2, 0).ok());
  REQUIRE(part(kLong / 2, kLong / 2).ok());
  REQUIRE(part(0, kLong / 2).ok());
  CHECK(optimizer.step().ok());
}

}  // namespace sotto::test::gradient_parts_test

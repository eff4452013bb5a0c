// Gradients in parts through sotto.h.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bindings/c_node.h"
#include "support/free_port.h"

namespace sotto::test::c_gradient_parts_test {

namespace {

constexpr int kNodes = 3;
constexpr std::size_t kLong = 3 * 4096;  // three buckets

using Models = std::vector<std::vector<float>>;
using CEpochs = std::unique_ptr<sotto_elastic_optimizer,
                                Destroy<sotto_elastic_optimizer, sotto_elastic_optimizer_destroy>>;

/// Pulls node i towards i.
std::vector<float> pull(int rank, const std::vector<float>& x) {
  std::vector<float> gradient(x);
  for (float& g : gradient) {
    g -= static_cast<float>(rank);
  }
  return gradient;
}

/// A step, by parts of up to `length` elements, the last part first; 0: by the whole gradient.
sotto_status step(sotto_optimizer* optimizer, const std::vector<float>& gradient,
                  std::size_t length) {
  if (length == 0) {
    return sotto_optimizer_step(optimizer, gradient.data(), gradient.size());
  }
  for (std::size_t end = gradient.size(); end > 0;) {
    const std::size_t first = (end - 1) / length * length;
    const sotto_status status =
        sotto_optimizer_gradient_part(optimizer, first, &gradient[first], end - first);
    if (status != SOTTO_OK) {
      return status;
    }
    end = first;
  }
  return sotto_optimizer_step_by_parts(optimizer);
}

Words words_of(int rank, const Words& more) {
  Words words = {"nodes", "3", "rank", std::to_string(rank), "seed", "1", "lr", "0.05"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Models trained(const Words& more, std::size_t length) {
  Models x(kNodes, std::vector<float>(kLong));
  const CStore store = c_store();
  c_play(kNodes, [&](int rank) {
    auto& mine = x[static_cast<std::size_t>(rank)];
    const COptimizer optimizer = c_optimizer(words_of(rank, more), mine, store.get());
    REQUIRE(optimizer != nullptr);
    int takes = 0;
    CHECK(sotto_optimizer_takes_parts(optimizer.get(), &takes) == SOTTO_OK);
    CHECK(takes == 1);
    sotto_status status = SOTTO_OK;
    for (int round = 0; round < 10 && status == SOTTO_OK; ++round) {
      status = step(optimizer.get(), pull(rank, mine), length);
    }
    CHECK_MESSAGE(status == SOTTO_OK, std::string(sotto_last_error()));
    CHECK(sotto_optimizer_finish(optimizer.get()) == SOTTO_OK);
  });
  return x;
}

COptimizer alone(std::vector<float>& x, const Words& more) {
  Words words = {"nodes", "1", "algorithm", "choco"};
  words.insert(words.end(), more.begin(), more.end());
  return c_optimizer(words, x);
}

sotto_status give(const COptimizer& optimizer, std::size_t first, const std::vector<float>& from,
                  std::size_t count) {
  return sotto_optimizer_gradient_part(optimizer.get(), first, from.data(), count);
}

}  // namespace

TEST_CASE("C: gradients in parts leave the bits of whole ones") {
  const std::vector<Words> runs = {
      {"algorithm", "choco", "compressor", "topk:0.1", "buckets", "3"},
      {"algorithm", "deepsqueeze", "compressor", "sign", "buckets", "3", "step-rule", "adam"},
      {"algorithm", "dcd", "compressor", "quant:8", "buckets", "3", "momentum", "0.9"}};
  for (const Words& words : runs) {
    CAPTURE(words[1]);
    const Models whole = trained(words, 0);
    CHECK(trained(words, 1000) == whole);
    CHECK(trained(words, kLong) == whole);
  }
}

TEST_CASE("C: parts of a gradient that do not fit, are missing or come twice are refused") {
  std::vector<float> x(kLong);
  const std::vector<float> before = x;
  const COptimizer optimizer = alone(x, {"buckets", "3"});
  const std::vector<float> ones(kLong, 1);
  CHECK(sotto_optimizer_step_by_parts(optimizer.get()) == SOTTO_REFUSED);
  CHECK(says("gradient: '0 elements'"));
  CHECK(give(optimizer, kLong, ones, 1) == SOTTO_REFUSED);
  CHECK(says("there are 12288 parameters"));
  CHECK(give(optimizer, std::numeric_limits<std::size_t>::max(), ones, 2) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_gradient_part(optimizer.get(), 0, nullptr, 1) == SOTTO_REFUSED);
  CHECK(says("part: a null pointer is refused"));
  REQUIRE(give(optimizer, 100, ones, 50) == SOTTO_OK);
  CHECK(give(optimizer, 149, ones, 1) == SOTTO_REFUSED);
  CHECK(says("in another part of this step's gradient"));
  CHECK(sotto_optimizer_step(optimizer.get(), ones.data(), kLong) == SOTTO_REFUSED);
  CHECK(says("parts of it were given"));
  CHECK(sotto_optimizer_finish(optimizer.get()) == SOTTO_REFUSED);
  CHECK(c_state(optimizer.get()).empty());
  std::vector<float> other(kLong);
  const auto fresh = c_state(alone(other, {"buckets", "3"}).get());
  REQUIRE(!fresh.empty());
  CHECK(sotto_optimizer_load(optimizer.get(), fresh.data(), fresh.size()) == SOTTO_REFUSED);
  CHECK(says("load: it comes before the first step"));
  CHECK(sotto_optimizer_step_by_parts(optimizer.get()) == SOTTO_REFUSED);
  CHECK(says("gradient: '50 elements'"));
  CHECK(x == before);
  REQUIRE(give(optimizer, 0, ones, 100) == SOTTO_OK);
  std::vector<float> spoilt = ones;
  spoilt[5] = std::numeric_limits<float>::quiet_NaN();
  CHECK(give(optimizer, 150, spoilt, kLong - 150) == SOTTO_NON_FINITE);
  REQUIRE(give(optimizer, 150, ones, kLong - 150) == SOTTO_OK);
  REQUIRE(sotto_optimizer_step_by_parts(optimizer.get()) == SOTTO_OK);
  CHECK(sotto_optimizer_step(optimizer.get(), ones.data(), kLong) == SOTTO_OK);
  CHECK_FALSE(c_state(optimizer.get()).empty());
  CHECK(sotto_optimizer_finish(optimizer.get()) == SOTTO_OK);
  CHECK(give(optimizer, 0, ones, 1) == SOTTO_REFUSED);
  CHECK(says("the run is finished"));
  CHECK(sotto_optimizer_step_by_parts(optimizer.get()) == SOTTO_REFUSED);
}

TEST_CASE("C: where gradients are needed whole parts are refused") {
  std::vector<float> x(kLong);
  int takes = 1;
  CHECK(sotto_optimizer_takes_parts(nullptr, &takes) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_gradient_part(nullptr, 0, x.data(), 1) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_step_by_parts(nullptr) == SOTTO_REFUSED);
  const std::vector<Words> whole = {
      {"buckets", "1"},
      {"buckets", "3", "clip-norm", "1"},
      {"buckets", "3", "communication-interval", "2"},
      {"buckets", "3", "clip-norm", "1", "noise-multiplier", "0.5", "privacy-unit", "update"}};
  for (const Words& words : whole) {
    const COptimizer optimizer = alone(x, words);
    REQUIRE(optimizer != nullptr);
    CHECK(sotto_optimizer_takes_parts(optimizer.get(), nullptr) == SOTTO_REFUSED);
    takes = 1;
    CHECK(sotto_optimizer_takes_parts(optimizer.get(), &takes) == SOTTO_OK);
    CHECK(takes == 0);
    CHECK(give(optimizer, 0, x, kLong) == SOTTO_REFUSED);
    CHECK(says("takes gradients whole"));
  }
}

TEST_CASE("C: a finite part that overflows the step rule ends the run, and is not saved") {
  std::vector<float> x(kLong, 1);
  const COptimizer optimizer = alone(x, {"buckets", "3", "momentum", "0.9", "lr", "1e10"});
  const std::vector<float> long_ones(kLong, 1e30F);
  CHECK(give(optimizer, 0, long_ones, 4096) == SOTTO_NON_FINITE);
  const std::vector<float> zeros(kLong);
  CHECK(give(optimizer, 0, zeros, kLong) == SOTTO_NON_FINITE);
  CHECK(sotto_optimizer_step_by_parts(optimizer.get()) == SOTTO_NON_FINITE);
  CHECK(c_state(optimizer.get()).empty());
  CHECK(x == std::vector<float>(kLong, 1));
}

namespace {

/// Heavy-ball momentum, tensor by tensor.
struct Momentum {
  std::vector<float> velocity = std::vector<float>(kLong);
  int calls = 0;
  int fails_at = 0;  ///< the number of the call that says what is wrong; 0: none
};

const char* momentum_step(void* context, std::uint64_t /*round*/, std::size_t first, const float* x,
                          const float* gradient, float* next, std::size_t count) {
  auto& rule = *static_cast<Momentum*>(context);
  if (++rule.calls == rule.fails_at) {
    return "no such moment";
  }
  for (std::size_t k = 0; k < count; ++k) {
    float& velocity = rule.velocity[first + k];
    velocity = 0.5F * velocity + gradient[k];
    next[k] = x[k] - 0.05F * velocity;
  }
  return nullptr;
}

/// Tensors of 4000 elements, and a shorter one.
CLayout tensors() {
  sotto_layout* layout = nullptr;
  CHECK(sotto_layout_create(&layout) == SOTTO_OK);
  for (std::size_t first = 0; first < kLong; first += 4000) {
    const std::size_t size = std::min<std::size_t>(4000, kLong - first);
    CHECK(sotto_layout_add(layout, fmt::format("t{}", first).c_str(), 1, &size) == SOTTO_OK);
  }
  return CLayout(layout);
}

/// A node that steps by `momentum`, with choco in three buckets; `rule` is to outlive it.
COptimizer ruled(int rank, std::vector<float>& x, sotto_store* store, sotto_step_rule* rule) {
  const CLayout layout = tensors();
  const CSetup setup = c_setup({.layout = layout.get(), .store = store, .rule = rule});
  return c_optimizer_from(setup.get(), words_of(rank, {"algorithm", "choco", "buckets", "3"}), x);
}

CRule rule_of(Momentum& momentum) {
  sotto_step_rule* made = nullptr;
  CHECK(sotto_step_rule_create_by_tensor("heavy-ball", momentum_step, &momentum, &made) ==
        SOTTO_OK);
  return CRule(made);
}

}  // namespace

TEST_CASE("C: a step rule of the caller's by tensor steps parts with the bits of whole gradients") {
  const auto trained_by = [](std::size_t length, int calls) {
    Models x(kNodes, std::vector<float>(kLong));
    const CStore store = c_store();
    c_play(kNodes, [&](int rank) {
      Momentum momentum;
      const CRule rule = rule_of(momentum);
      auto& mine = x[static_cast<std::size_t>(rank)];
      const COptimizer optimizer = ruled(rank, mine, store.get(), rule.get());
      REQUIRE(optimizer != nullptr);
      for (int round = 0; round < 10; ++round) {
        CHECK(step(optimizer.get(), pull(rank, mine), length) == SOTTO_OK);
      }
      CHECK(sotto_optimizer_finish(optimizer.get()) == SOTTO_OK);
      CHECK(momentum.calls == 10 * calls);
    });
    return x;
  };
  const Models whole = trained_by(0, 1);
  CHECK(trained_by(4000, 4) == whole);
  CHECK(trained_by(8000, 2) == whole);
}

TEST_CASE("C: what a step rule says is wrong with a part ends the run at all nodes") {
  Models x(kNodes, std::vector<float>(kLong));
  const CStore store = c_store();
  c_play(kNodes, [&](int rank) {
    Momentum momentum{.fails_at = rank == 1 ? 10 : 0};  // in the third round, of four parts each
    const CRule rule = rule_of(momentum);
    auto& mine = x[static_cast<std::size_t>(rank)];
    const COptimizer optimizer = ruled(rank, mine, store.get(), rule.get());
    REQUIRE(optimizer != nullptr);
    sotto_status status = SOTTO_OK;
    for (int round = 0; round < 50 && status == SOTTO_OK; ++round) {
      status = step(optimizer.get(), pull(rank, mine), 4000);
    }
    CHECK(status == SOTTO_UNEXPECTED);
    CHECK(says("the step rule heavy-ball: no such moment"));
    CHECK(sotto_optimizer_step_by_parts(optimizer.get()) == SOTTO_UNEXPECTED);
    CHECK(says("no such moment"));
    CHECK(c_state(optimizer.get()).empty());
  });
}

TEST_CASE("C: a part that cuts a tensor is refused where the step rule takes whole ones") {
  Momentum momentum;
  const CRule rule = rule_of(momentum);
  sotto_step_rule* none = nullptr;
  CHECK(sotto_step_rule_create_by_tensor(nullptr, momentum_step, nullptr, &none) == SOTTO_REFUSED);
  CHECK(sotto_step_rule_create_by_tensor("rule", nullptr, nullptr, &none) == SOTTO_REFUSED);
  CHECK(sotto_step_rule_create_by_tensor("rule", momentum_step, nullptr, nullptr) == SOTTO_REFUSED);
  std::vector<float> x(kLong);
  const std::vector<float> ones(kLong, 1);
  const CStore store = c_store();
  const COptimizer optimizer = ruled(0, x, store.get(), rule.get());
  REQUIRE(optimizer != nullptr);
  CHECK(give(optimizer, 0, ones, 3999) == SOTTO_REFUSED);
  CHECK(says("it cuts the tensor t0,"));
  CHECK(give(optimizer, 4001, ones, 3999) == SOTTO_REFUSED);
  CHECK(says("it cuts the tensor t4000,"));
}

namespace {

CEpochs c_epochs(const std::string& name, const std::string& seeds, std::vector<float>& x,
                 const Words& more) {
  Words words = {"name", name, "seeds", seeds, "lr", "0.1", "wait-limit", "60"};
  words.insert(words.end(), more.begin(), more.end());
  sotto_elastic_optimizer* made = nullptr;
  CHECK_MESSAGE(sotto_elastic_optimizer_create(as_settings(words).data(), x.data(), x.size(),
                                               nullptr, &made) == SOTTO_OK,
                std::string(sotto_last_error()));
  return CEpochs(made);
}

std::string free_address() { return fmt::format("127.0.0.1:{}", free_port()); }

/// The models of two nodes after five steps; `length` as in `step`.
Models epochs_trained(std::size_t length) {
  Models x(2, std::vector<float>(100));
  const std::string seeds = free_address();
  c_play(2, [&](int rank) {
    auto& mine = x[static_cast<std::size_t>(rank)];
    const CEpochs node =
        c_epochs(rank == 0 ? "a" : "b", seeds, mine,
                 {"nodes", "2:2", "rounds", "5", "listen", rank == 0 ? seeds : "127.0.0.1:0"});
    REQUIRE(node != nullptr);
    CHECK(sotto_elastic_optimizer_connect(node.get()) == SOTTO_OK);
    for (std::uint64_t round = 0; round < 5;) {
      const auto gradient = pull(rank, mine);
      sotto_status status = SOTTO_OK;
      for (std::size_t first = 0; length > 0 && first < mine.size(); first += length) {
        status = sotto_elastic_optimizer_gradient_part(node.get(), first, &gradient[first], length);
        CHECK_MESSAGE(status == SOTTO_OK, std::string(sotto_last_error()));
      }
      int outcome = -1;
      status = length > 0 ? sotto_elastic_optimizer_step_by_parts(node.get(), NAN, &round, &outcome)
                          : sotto_elastic_optimizer_step(node.get(), gradient.data(),
                                                         gradient.size(), NAN, &round, &outcome);
      CHECK_MESSAGE(status == SOTTO_OK, std::string(sotto_last_error()));
      CHECK(outcome == 0);
      round = status == SOTTO_OK ? round : 5;
    }
    CHECK(sotto_elastic_optimizer_finish(node.get()) == SOTTO_OK);
  });
  return x;
}

}  // namespace

TEST_CASE("C: nodes that come and go step by parts with the bits of whole gradients") {
  const Models whole = epochs_trained(0);
  CHECK(whole[0] == whole[1]);
  CHECK(whole[0][0] > 0.1F);
  CHECK(epochs_trained(20) == whole);
}

TEST_CASE("C: parts of gradients that a node of one model refuses") {
  std::vector<float> x(3);
  const Words one = {"nodes", "1", "found-after", "0.01"};
  const CEpochs node = c_epochs("a", free_address(), x, one);
  REQUIRE(node != nullptr);
  REQUIRE(sotto_elastic_optimizer_connect(node.get()) == SOTTO_OK);
  const auto part = [&](std::size_t first, const std::vector<float>& values) {
    return sotto_elastic_optimizer_gradient_part(node.get(), first, values.data(), values.size());
  };
  int takes = 0;
  CHECK(sotto_elastic_optimizer_takes_parts(node.get(), nullptr) == SOTTO_REFUSED);
  CHECK(sotto_elastic_optimizer_takes_parts(node.get(), &takes) == SOTTO_OK);
  CHECK(takes == 1);
  CHECK(sotto_elastic_optimizer_step_by_parts(nullptr, 0, nullptr, nullptr) == SOTTO_REFUSED);
  CHECK(part(2, {1, 1}) == SOTTO_REFUSED);
  CHECK(sotto_elastic_optimizer_gradient_part(node.get(), 0, nullptr, 1) == SOTTO_REFUSED);
  REQUIRE(part(1, {1, 1}) == SOTTO_OK);
  CHECK(part(2, {1}) == SOTTO_REFUSED);
  CHECK(says("in another part"));
  CHECK(sotto_elastic_optimizer_step(node.get(), x.data(), 3, NAN, nullptr, nullptr) ==
        SOTTO_REFUSED);
  CHECK(says("parts of it were given"));
  std::uint64_t round = 7;
  CHECK(sotto_elastic_optimizer_step_by_parts(node.get(), 0, &round, nullptr) == SOTTO_REFUSED);
  CHECK(says("gradient: '2 elements'"));
  CHECK(part(0, {std::numeric_limits<float>::infinity()}) == SOTTO_NON_FINITE);
  CHECK(x == std::vector<float>(3));
  CHECK(round == 7);
  REQUIRE(part(0, {1}) == SOTTO_OK);
  CHECK(sotto_elastic_optimizer_step_by_parts(node.get(), 0, &round, nullptr) == SOTTO_OK);
  CHECK(round == 1);
  CHECK(x == std::vector<float>(3, -0.1F));

  std::vector<float> y(3);
  Words words = one;
  words.insert(words.end(), {"communication-interval", "2", "outer-lr", "0.5"});
  const CEpochs local = c_epochs("a", free_address(), y, words);
  CHECK(sotto_elastic_optimizer_takes_parts(local.get(), &takes) == SOTTO_OK);
  CHECK(takes == 0);
  CHECK(sotto_elastic_optimizer_gradient_part(local.get(), 0, y.data(), 1) == SOTTO_REFUSED);
  CHECK(says("with local steps"));
}

}  // namespace sotto::test::c_gradient_parts_test

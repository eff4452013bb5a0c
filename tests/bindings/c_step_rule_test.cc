// Step rules of the caller's own through sotto.h.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c_node.h"
#include "trainers/nodes.h"

namespace sotto::test::c_step_rule_test {

namespace {

constexpr int kNodes = 3;
constexpr std::size_t kDimension = 30;

using Models = std::vector<std::vector<float>>;

/// Heavy-ball momentum: what a rule remembers, and what it is told to say.
struct Momentum {
  std::vector<float> velocity = std::vector<float>(kDimension);
  std::string trouble;           ///< returned in place of a step where it is not empty
  std::uint64_t trouble_at = 0;  ///< from this round on
  std::uint64_t last_round = 0;

  void step(std::span<const float> x, std::span<const float> gradient, std::span<float> next) {
    for (std::size_t k = 0; k < next.size(); ++k) {
      velocity[k] = 0.5F * velocity[k] + gradient[k];
      next[k] = x[k] - 0.05F * velocity[k];
    }
  }
};

const char* momentum_step(void* context, std::uint64_t round, const float* x, const float* gradient,
                          float* next, std::size_t count) {
  auto& rule = *static_cast<Momentum*>(context);
  rule.last_round = round;
  if (!rule.trouble.empty() && round >= rule.trouble_at) {
    return rule.trouble.c_str();
  }
  rule.step({x, count}, {gradient, count}, {next, count});
  return nullptr;
}

CRule c_rule(Momentum& rule, const char* name = "heavy-ball") {
  sotto_step_rule* made = nullptr;
  REQUIRE(sotto_step_rule_create(name, momentum_step, &rule, &made) == SOTTO_OK);
  return CRule(made);
}

COptimizer c_ruled(const Words& words, std::vector<float>& x, sotto_step_rule* rule,
                   sotto_store* store = nullptr) {
  return c_optimizer_from(c_setup({.store = store, .rule = rule}).get(), words, x);
}

Words words_of(int rank, const Words& more) {
  Words words = {"nodes", "3", "rank", std::to_string(rank), "seed", "1", "lr", "0.05"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Pulls node i towards i.
std::vector<float> pull(int rank, std::span<const float> x) {
  std::vector<float> gradient(x.begin(), x.end());
  for (float& g : gradient) {
    g -= static_cast<float>(rank);
  }
  return gradient;
}

sotto_status steps(sotto_optimizer* optimizer, int rank, const std::vector<float>& x, int count) {
  for (int i = 0; i < count; ++i) {
    const auto gradient = pull(rank, x);
    const sotto_status status = sotto_optimizer_step(optimizer, gradient.data(), gradient.size());
    if (status != SOTTO_OK) {
      return status;
    }
  }
  return SOTTO_OK;
}

/// Momentum as a C++ step rule.
class CppMomentum final : public sotto::StepRule {
 public:
  std::string_view name() const override { return "heavy-ball"; }
  void resize(const sotto::ParameterLayout& /*layout*/) override {}
  sotto::Status direction(sotto::Round /*round*/, std::span<const float> x,
                          std::span<const float> gradient, std::span<float> d) override {
    std::vector<float> next(d.size());
    rule_.step(x, gradient, next);
    for (std::size_t k = 0; k < d.size(); ++k) {
      d[k] = x[k] - next[k];
    }
    return {};
  }
  sotto::Status next_model(sotto::Round /*round*/, std::span<const float> x,
                           std::span<const float> gradient, std::span<float> next,
                           const sotto::Ops& /*ops*/) override {
    rule_.step(x, std::vector<float>(gradient.begin(), gradient.end()), next);
    return {};
  }
  void set_learning_rate(double /*learning_rate*/) override {}
  void save(sotto::ByteBuffer& /*out*/) const override {}
  sotto::Status load(sotto::ByteReader& /*in*/) override { return {}; }

 private:
  Momentum rule_;
};

Models cpp_trained(const std::string& algorithm, int rounds) {
  Models x(kNodes, std::vector<float>(kDimension));
  const auto store = sotto::make_memory_store();
  c_play(kNodes, [&](int rank) {
    sotto::OptimizerOptions options = options_for(kNodes, store);
    options.rank = rank;
    options.seed = 1;
    options.algorithm = algorithm;
    options.step_rule.learning_rate = 0.05;
    options.own_step_rule = [] { return std::make_unique<CppMomentum>(); };
    auto& mine = x[static_cast<std::size_t>(rank)];
    sotto::Optimizer optimizer(options, mine);
    bool ok = true;
    for (int i = 0; ok && i < rounds; ++i) {
      ok = optimizer.step(pull(rank, mine)).ok();
    }
    ok = ok && optimizer.finish().ok();
    CHECK(ok);
  });
  return x;
}

Models c_trained(const std::string& algorithm, int rounds) {
  Models x(kNodes, std::vector<float>(kDimension));
  const CStore store = c_store();
  c_play(kNodes, [&](int rank) {
    Momentum momentum;
    const CRule rule = c_rule(momentum);
    auto& mine = x[static_cast<std::size_t>(rank)];
    const auto optimizer =
        c_ruled(words_of(rank, {"algorithm", algorithm}), mine, rule.get(), store.get());
    const bool done = optimizer != nullptr &&
                      steps(optimizer.get(), rank, mine, rounds) == SOTTO_OK &&
                      sotto_optimizer_finish(optimizer.get()) == SOTTO_OK;
    CHECK_MESSAGE(done, std::string(sotto_last_error()));
    CHECK(momentum.last_round + 1 == static_cast<std::uint64_t>(rounds));
  });
  return x;
}

}  // namespace

TEST_CASE("c: a step rule of the caller's own gives the bits of one in C++") {
  for (const char* algorithm : {"dcd", "choco", "dpsgd", "allreduce", "ef21", "qmean", "pushsum"}) {
    CAPTURE(algorithm);
    const Models expected = cpp_trained(algorithm, 12);
    CHECK(c_trained(algorithm, 12) == expected);
    CHECK(expected[0][0] > 0.1F);
  }
}

TEST_CASE("c: what a step rule says is wrong ends the run at all nodes") {
  Models x(kNodes, std::vector<float>(kDimension));
  const CStore store = c_store();
  c_play(kNodes, [&](int rank) {
    Momentum momentum;
    momentum.trouble = rank == 1 ? "no such moment\n" : "";
    momentum.trouble_at = 4;
    const CRule rule = c_rule(momentum);
    auto& mine = x[static_cast<std::size_t>(rank)];
    const auto optimizer =
        c_ruled(words_of(rank, {"algorithm", "dcd"}), mine, rule.get(), store.get());
    REQUIRE(optimizer != nullptr);
    CHECK(steps(optimizer.get(), rank, mine, 100) == SOTTO_UNEXPECTED);
    CHECK(says("the step rule heavy-ball: no such moment"));
    CHECK(sotto_optimizer_step(optimizer.get(), mine.data(), mine.size()) == SOTTO_UNEXPECTED);
  });
}

TEST_CASE("c: a step rule whose model overflows ends the run") {
  Momentum momentum;
  momentum.velocity.assign(kDimension, std::numeric_limits<float>::infinity());
  for (const char* algorithm : {"dcd", "allreduce"}) {
    const CRule rule = c_rule(momentum);
    std::vector<float> x(kDimension);
    const auto optimizer = c_ruled({"nodes", "1", "algorithm", algorithm}, x, rule.get());
    CHECK(steps(optimizer.get(), 1, x, 1) == SOTTO_NON_FINITE);
    CHECK(x == std::vector<float>(kDimension));
    CHECK(steps(optimizer.get(), 1, x, 1) == SOTTO_NON_FINITE);
  }
}

TEST_CASE("c: settings of the local step that a rule has itself are refused, and others are not") {
  Momentum momentum;
  const CRule rule = c_rule(momentum);
  std::vector<float> x(kDimension);
  const std::vector<Words> refused = {
      {"step-rule", "adam"}, {"momentum", "0.5"},    {"nesterov", "true"}, {"weight_decay", "0.1"},
      {"beta1", "0.8"},      {"schedule", "step:5"}, {"clip-norm", "1"}};
  for (Words words : refused) {
    std::string name = words[0];
    std::replace(name.begin(), name.end(), '-', '_');
    words.insert(words.end(), {"nodes", "1"});
    CHECK(c_ruled(words, x, rule.get()) == nullptr);
    CHECK(says(name + ": the step rule is the caller's own"));
  }
  CHECK(c_ruled({"nodes", "1", "algorithm", "onebit-adam"}, x, rule.get()) == nullptr);
  const Words with_privacy = {"nodes",        "1",     "clip-norm", "1", "noise-multiplier", "0.5",
                              "privacy-unit", "update"};
  const bool kept = c_ruled(with_privacy, x, rule.get()) != nullptr;
  CHECK_MESSAGE(kept, std::string(sotto_last_error()));
  const auto local =
      c_ruled({"nodes", "1", "communication-interval", "2", "outer-lr", "0.5"}, x, rule.get());
  REQUIRE(local != nullptr);
  CHECK(steps(local.get(), 1, x, 4) == SOTTO_OK);
  CHECK(c_report(local.get())["settings"]["step-rule"] == "heavy-ball");
  CHECK(c_ruled({"nodes", "1", "momentum", "0.5"}, x, nullptr) != nullptr);
}

TEST_CASE("c: a step rule makes the steps of one optimizer at a time") {
  Momentum momentum;
  const CRule rule = c_rule(momentum);
  std::vector<float> x(kDimension);
  std::vector<float> y(kDimension);
  auto first = c_ruled({"nodes", "1"}, x, rule.get());
  REQUIRE(first != nullptr);
  CHECK(c_ruled({"nodes", "1"}, y, rule.get()) == nullptr);
  CHECK(says("the steps of another optimizer"));
  first.reset();
  CHECK(c_ruled({"nodes", "1"}, y, rule.get()) != nullptr);
}

TEST_CASE("c: null and names that settings cannot hold are refused") {
  Momentum momentum;
  sotto_step_rule* made = nullptr;
  CHECK(sotto_step_rule_create(nullptr, momentum_step, &momentum, &made) == SOTTO_REFUSED);
  CHECK(sotto_step_rule_create("rule", nullptr, &momentum, &made) == SOTTO_REFUSED);
  CHECK(sotto_step_rule_create("rule", momentum_step, &momentum, nullptr) == SOTTO_REFUSED);
  CHECK(sotto_step_rule_create("", momentum_step, &momentum, &made) == SOTTO_REFUSED);
  CHECK(sotto_step_rule_create("a\nb", momentum_step, &momentum, &made) == SOTTO_REFUSED);
  CHECK(made == nullptr);
  sotto_step_rule_destroy(nullptr);
}

TEST_CASE("c: after a step rule was destroyed nothing of it is called") {
  Momentum momentum;
  CRule rule = c_rule(momentum);
  std::vector<float> x(kDimension);
  const auto optimizer = c_ruled({"nodes", "1"}, x, rule.get());
  CHECK(steps(optimizer.get(), 1, x, 3) == SOTTO_OK);
  rule.reset();
  CHECK(steps(optimizer.get(), 1, x, 1) == SOTTO_STOPPED);
  CHECK(says("the step rule heavy-ball was destroyed"));
  CHECK(momentum.last_round == 2);
}

namespace {

/// Stays inside a call until it may leave.
struct Waiting {
  std::atomic<bool> inside{false};
  std::atomic<bool> may_leave{false};
  std::atomic<bool> left{false};
};

const char* wait_inside(void* context, std::uint64_t /*round*/, const float* x,
                        const float* /*gradient*/, float* next, std::size_t count) {
  auto& waiting = *static_cast<Waiting*>(context);
  waiting.inside = true;
  waiting.inside.notify_all();
  waiting.may_leave.wait(false);
  std::copy(x, x + count, next);
  waiting.left = true;
  return nullptr;
}

}  // namespace

TEST_CASE("c: destroying a step rule waits for the call that is under way") {
  Waiting waiting;
  sotto_step_rule* rule = nullptr;
  REQUIRE(sotto_step_rule_create("waiting", wait_inside, &waiting, &rule) == SOTTO_OK);
  std::vector<float> x(kDimension);
  const auto optimizer = c_ruled({"nodes", "1"}, x, rule);
  std::thread stepping([&] { CHECK(steps(optimizer.get(), 1, x, 1) == SOTTO_OK); });
  waiting.inside.wait(false);
  std::thread destroying([&] {
    sotto_step_rule_destroy(rule);
    const bool left = waiting.left;
    CHECK(left);
  });
  waiting.may_leave = true;
  waiting.may_leave.notify_all();
  stepping.join();
  destroying.join();
}

TEST_CASE("c: a rule's settings that one node alone changes are found") {
  for (const char* others : {"", "momentum=0.9"}) {
    Models x(kNodes, std::vector<float>(kDimension));
    const CStore store = c_store();
    c_play(kNodes, [&](int rank) {
      Momentum momentum;
      const CRule rule = c_rule(momentum);
      auto& mine = x[static_cast<std::size_t>(rank)];
      const auto optimizer =
          c_ruled(words_of(rank, {"algorithm", "allreduce"}), mine, rule.get(), store.get());
      REQUIRE(optimizer != nullptr);
      CHECK(steps(optimizer.get(), rank, mine, 2) == SOTTO_OK);
      // All of them at first.
      CHECK(sotto_optimizer_announce_settings(optimizer.get(), 0.025, "") == SOTTO_OK);
      CHECK(steps(optimizer.get(), rank, mine, 2) == SOTTO_OK);
      CHECK(c_report(optimizer.get())["learning_rate"] == 0.025);
      if (rank == 1) {
        CHECK(sotto_optimizer_announce_settings(optimizer.get(), 0.0125, others) == SOTTO_OK);
      }
      CHECK(steps(optimizer.get(), rank, mine, 3) == SOTTO_UNEXPECTED);
    });
  }
}

TEST_CASE("c: the rate of a rule of the caller's is announced, and that of sotto's is set") {
  Momentum momentum;
  const CRule rule = c_rule(momentum);
  std::vector<float> x(kDimension);
  const auto ruled = c_ruled({"nodes", "1"}, x, rule.get());
  CHECK(sotto_optimizer_set_learning_rate(ruled.get(), 0.5) == SOTTO_REFUSED);
  CHECK(says("sotto_optimizer_announce_settings"));
  for (const double rate : {std::numeric_limits<double>::quiet_NaN(), -1.0, 1e300}) {
    CHECK(sotto_optimizer_announce_settings(ruled.get(), rate, "") == SOTTO_REFUSED);
  }
  CHECK(sotto_optimizer_announce_settings(ruled.get(), 0.5, nullptr) == SOTTO_REFUSED);
  const auto plain = c_optimizer({"nodes", "1"}, x);
  CHECK(sotto_optimizer_announce_settings(plain.get(), 0.5, "") == SOTTO_REFUSED);
  CHECK(says("sotto_optimizer_set_learning_rate"));
}

TEST_CASE("c: a state goes on with the rule's memory, which the caller keeps, and with its name") {
  Momentum momentum;
  const CRule rule = c_rule(momentum);
  std::vector<float> x(kDimension);
  const auto first = c_ruled({"nodes", "1"}, x, rule.get());
  REQUIRE(steps(first.get(), 1, x, 5) == SOTTO_OK);
  const auto state = c_state(first.get());
  Momentum kept = momentum;
  REQUIRE(steps(first.get(), 1, x, 5) == SOTTO_OK);
  std::vector<float> y(kDimension);
  const CRule again = c_rule(kept);
  const auto second = c_ruled({"nodes", "1"}, y, again.get());
  REQUIRE(sotto_optimizer_load(second.get(), state.data(), state.size()) == SOTTO_OK);
  CHECK(steps(second.get(), 1, y, 5) == SOTTO_OK);
  CHECK(x == y);
  Momentum other;
  const CRule renamed = c_rule(other, "other-rule");
  const auto third = c_ruled({"nodes", "1"}, y, renamed.get());
  CHECK(sotto_optimizer_load(third.get(), state.data(), state.size()) == SOTTO_UNEXPECTED);
  CHECK(says("step-rule"));
}

}  // namespace sotto::test::c_step_rule_test

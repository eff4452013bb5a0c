// A node of an all-reduce whose nodes come and go, through sotto.h.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bindings/c_node.h"
#include "support/free_port.h"

namespace sotto::test::c_elastic_test {

namespace {

constexpr std::size_t kDimension = 12;
using CNode = std::unique_ptr<sotto_elastic_optimizer,
                              Destroy<sotto_elastic_optimizer, sotto_elastic_optimizer_destroy>>;
/// Null, with sotto_last_error, when it is refused.
CNode c_epochs(const Words& words, std::vector<float>& x) {
  sotto_elastic_optimizer* made = nullptr;
  const auto settings = as_settings(words);
  const sotto_status status =
      sotto_elastic_optimizer_create(settings.data(), x.data(), x.size(), nullptr, &made);
  CHECK((status == SOTTO_OK) == (made != nullptr));
  return CNode(made);
}

std::string refused(const Words& words) {
  std::vector<float> x(kDimension);
  return c_epochs(words, x) == nullptr ? std::string(sotto_last_error()) : "";
}

CNode c_node_from(const sotto_optimizer_setup* setup, const Words& words, std::vector<float>& x) {
  sotto_elastic_optimizer* made = nullptr;
  const auto settings = as_settings(words);
  const sotto_status status =
      sotto_elastic_optimizer_create_from(setup, settings.data(), x.data(), x.size(), &made);
  CHECK((status == SOTTO_OK) == (made != nullptr));
  return CNode(made);
}

/// Momentum where all elements are alike, and thus one velocity.
struct Ball {
  float velocity = 0;
  int asked = 0;  ///< calls of ball_settings
};

const char* ball_step(void* context, std::uint64_t /*round*/, const float* x, const float* gradient,
                      float* next, std::size_t count) {
  auto& ball = *static_cast<Ball*>(context);
  ball.velocity = 0.5F * ball.velocity + gradient[0];
  for (std::size_t k = 0; k < count; ++k) {
    next[k] = x[k] - 0.1F * ball.velocity;
  }
  return nullptr;
}

const char* save_ball(void* context, const void** bytes, std::size_t* size) {
  *bytes = &static_cast<Ball*>(context)->velocity;
  *size = sizeof(float);
  return nullptr;
}

const char* load_ball(void* context, const void* bytes, std::size_t size) {
  float& velocity = static_cast<Ball*>(context)->velocity;
  if (size == 0) {
    velocity = 0;
    return nullptr;
  }
  if (size != sizeof(float)) {
    return "it is no velocity";
  }
  std::memcpy(&velocity, bytes, size);
  return nullptr;
}

std::uint64_t ball_settings(void* context, std::uint64_t step) {
  ++static_cast<Ball*>(context)->asked;
  return step / 3;
}

/// Three nodes: with fewer, no step is made.
Words node_settings(const std::string& seeds, std::uint64_t rounds) {
  return {"nodes",      "3:3", "seeds", seeds, "lr", "0.1", "rounds", fmt::to_string(rounds),
          "wait-limit", "60"};
}

std::uint64_t round_of(sotto_elastic_optimizer* node) {
  uint64_t round = 0;
  CHECK(sotto_elastic_optimizer_round(node, &round) == SOTTO_OK);
  return round;
}

/// A step towards the vector of `centre`.
sotto_status step(sotto_elastic_optimizer* node, const std::vector<float>& x, float centre,
                  uint64_t* round) {
  std::vector<float> gradient(x);
  for (float& g : gradient) {
    g -= centre;
  }
  return sotto_elastic_optimizer_step(node, gradient.data(), gradient.size(), NAN, round, nullptr);
}

/// Steps until the run has had `steps`; leaves as a process that dies does.
void die_after(std::uint64_t steps, const Words& words) {
  std::vector<float> x(kDimension);
  const CNode node = c_epochs(words, x);
  CHECK_MESSAGE(node != nullptr, std::string(sotto_last_error()));
  uint64_t round = 0;
  while (node != nullptr && round < steps) {
    const sotto_status status = step(node.get(), x, 3, &round);
    CHECK_MESSAGE(status == SOTTO_OK, std::string(sotto_last_error()));
    round = status == SOTTO_OK ? round : steps;
  }
}

/// Steps until the run is over, and leaves in good order; the model then.
std::vector<float> stay(const Words& words, float centre) {
  std::vector<float> x(kDimension);
  const CNode node = c_epochs(words, x);
  CHECK_MESSAGE(node != nullptr, std::string(sotto_last_error()));
  if (node == nullptr) {
    return x;
  }
  sotto_status status = sotto_elastic_optimizer_connect(node.get());
  int over = 0;
  while (status == SOTTO_OK && over == 0) {
    status = step(node.get(), x, centre, nullptr);
    CHECK(sotto_elastic_optimizer_over(node.get(), &over) == SOTTO_OK);
  }
  CHECK_MESSAGE(status == SOTTO_OK, std::string(sotto_last_error()));
  CHECK(sotto_elastic_optimizer_evaluated(node.get(), 0.5, NAN) == SOTTO_OK);
  CHECK(sotto_elastic_optimizer_finish(node.get()) == SOTTO_OK);
  char* text = nullptr;
  CHECK(sotto_elastic_optimizer_report(node.get(), &text) == SOTTO_OK);
  CHECK(c_json(text)["evaluation"]["loss"] == 0.5);
  CHECK(sotto_elastic_optimizer_events(node.get(), &text) == SOTTO_OK);
  CHECK(c_json(text).size() >= 3);
  return x;
}

}  // namespace

TEST_CASE("C: nodes of one model die, others come, and all end with the same bits") {
  const std::string seeds = fmt::format("127.0.0.1:{}", free_ports(1));
  const Words words = node_settings(seeds, 40);
  std::vector<std::vector<float>> ends(3);
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < 2; ++k) {
    threads.emplace_back([&, k] { ends[k] = stay(words, static_cast<float>(k)); });
  }
  threads.emplace_back([&] {
    die_after(5, words);
    ends[2] = stay(words, 3);  // another node, which takes the model over
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(ends[0] == ends[1]);
  CHECK(ends[0] == ends[2]);
  CHECK(ends[0][0] > 1);  // of 40 steps of 0.1 towards (0 + 1 + 3)/3
}

TEST_CASE("C: a rule of the caller's own steps a node, and only with what it says of its memory") {
  Ball ball;
  sotto_step_rule* made = nullptr;
  REQUIRE(sotto_step_rule_create("ball", ball_step, &ball, &made) == SOTTO_OK);
  const CRule rule(made);
  const CSetup setup = c_setup({.rule = made});
  std::vector<float> x(kDimension);
  Words words = {"nodes",       "1:2",  "seeds",      fmt::format("127.0.0.1:{}", free_ports(1)),
                 "found-after", "0.01", "wait-limit", "60",
                 "rounds",      "6",    "job.size",   "large"};
  CHECK(c_node_from(setup.get(), words, x) == nullptr);
  CHECK(std::string(sotto_last_error()).find("sotto_step_rule_set_state") != std::string::npos);
  REQUIRE(sotto_step_rule_set_state(made, save_ball, load_ball) == SOTTO_OK);
  REQUIRE(sotto_step_rule_set_settings(made, ball_settings) == SOTTO_OK);
  ball.velocity = 5;  // of another life: a node begins without a memory
  words.insert(words.end(), {"lr", "0.1"});
  CHECK(c_node_from(setup.get(), words, x) == nullptr);
  CHECK(std::string(sotto_last_error()).find("lr: the step rule is the caller's own") == 0);
  words.resize(words.size() - 2);
  const CNode node = c_node_from(setup.get(), words, x);
  REQUIRE_MESSAGE(node != nullptr, std::string(sotto_last_error()));
  float expected = 0;
  for (float velocity = 0; round_of(node.get()) < 6;) {
    REQUIRE(step(node.get(), x, 2, nullptr) == SOTTO_OK);
    velocity = 0.5F * velocity + (expected - 2);
    expected -= 0.1F * velocity;
    CHECK(x == std::vector<float>(kDimension, expected));
  }
  CHECK(ball.asked > 0);
  CHECK(sotto_elastic_optimizer_finish(node.get()) == SOTTO_OK);
  const CStore store = c_store();
  const CSetup with_store = c_setup({.store = store.get(), .rule = made});
  CHECK(c_node_from(with_store.get(), words, x) == nullptr);
  CHECK(std::string(sotto_last_error()).find("store: ") == 0);
  CHECK(sotto_step_rule_set_state(made, nullptr, load_ball) == SOTTO_REFUSED);
  CHECK(sotto_step_rule_set_settings(nullptr, ball_settings) == SOTTO_REFUSED);
}

TEST_CASE("C: a node without a quorum waits as long as it is told, and is told to stop") {
  std::vector<float> x(kDimension);
  Words words = node_settings(fmt::format("127.0.0.1:{}", free_ports(1)), 9);
  words.back() = "0.05";
  const CNode node = c_epochs(words, x);
  REQUIRE(node != nullptr);
  CHECK(sotto_elastic_optimizer_connect(node.get()) == SOTTO_DEADLINE);
  CHECK(sotto_elastic_optimizer_connect(node.get()) == SOTTO_DEADLINE);
  CHECK(sotto_elastic_optimizer_wait(node.get(), nullptr, nullptr) ==
        SOTTO_REFUSED);  // no step is pending
  CHECK(sotto_elastic_optimizer_cancel(node.get()) == SOTTO_OK);
  CHECK(sotto_elastic_optimizer_connect(node.get()) == SOTTO_STOPPED);
  CHECK(sotto_elastic_optimizer_stop(node.get()) == SOTTO_OK);
  int over = 0;
  CHECK(sotto_elastic_optimizer_over(node.get(), &over) == SOTTO_OK);
  CHECK(over == 1);
  CHECK(sotto_elastic_optimizer_connect(node.get()) == SOTTO_STOPPED);
  CHECK(round_of(node.get()) == 0);
}

TEST_CASE("C: what a node of one model is refused for") {
  const Words fine = node_settings("127.0.0.1:9", 9);
  const auto with = [&](const std::string& name, const std::string& value) {
    Words words = fine;
    words.push_back(name);
    words.push_back(value);
    return refused(words);
  };
  CHECK(refused({"seeds", "127.0.0.1:9"}).starts_with("nodes: it is missing"));
  CHECK(refused({"nodes", "2:3"}).starts_with("seeds: it is missing"));
  CHECK(refused({"nodes", "3:2", "seeds", "127.0.0.1:9"}).find("MIN:MAX") != std::string::npos);
  CHECK(with("no-such", "1").starts_with("no_such: there is no such"));
  CHECK(with("lr", "1") == "lr: it is given twice");
  CHECK(with("algorithm", "dpsgd").find("allreduce and qmean") != std::string::npos);
  CHECK(with("compressor", "quant:8").find("qmean compresses") != std::string::npos);
  CHECK(refused({"nodes", "2:3", "seeds", "127.0.0.1:9", "schedule", "cosine"})
            .find("it needs an end") != std::string::npos);
  CHECK(with("grace", "-1").find("0.001 to 86400 seconds") != std::string::npos);
  CHECK(sotto_elastic_optimizer_connect(nullptr) == SOTTO_REFUSED);
  char* text = nullptr;
  CHECK(sotto_list("elastic-settings", &text) == SOTTO_OK);
  CHECK(c_json(text).size() > 10);
}

}  // namespace sotto::test::c_elastic_test

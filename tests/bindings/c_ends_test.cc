// Nodes that change settings, end early or have different amounts of data, through sotto.h.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c_node.h"
#include "trainers/nodes.h"

namespace sotto::test::c_ends_test {

namespace {

constexpr int kNodes = 3;
constexpr std::size_t kDimension = 12;

Words words_of(int rank, Words more) {
  Words words = {"nodes", "3", "rank", std::to_string(rank), "lr", "0.1", "timeout", "3600"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

sotto_status step(sotto_optimizer* optimizer, int rank, const std::vector<float>& x) {
  std::vector<float> gradient(x);
  std::ranges::for_each(gradient, [&](float& g) { g -= static_cast<float>(rank); });
  return sotto_optimizer_step(optimizer, gradient.data(), gradient.size());
}

std::uint64_t round_of(const sotto_optimizer* optimizer) {
  std::uint64_t round = 0;
  (void)sotto_optimizer_round(const_cast<sotto_optimizer*>(optimizer), &round);
  return round;
}

struct End {
  sotto_status step = SOTTO_OK;
  sotto_status finish = SOTTO_OK;
  std::string error;
  std::uint64_t rounds = 0;
  std::vector<float> mean = std::vector<float>(kDimension);
};

/// Node i has data for 4 + 3 i steps.
std::vector<End> uneven(const Words& more) {
  const CStore store = c_store();
  std::vector<End> ends(kNodes);
  (void)play(kNodes, [&](sotto::Rank rank) -> sotto::Status {
    End& end = ends[static_cast<std::size_t>(rank)];
    std::vector<float> x(kDimension);
    const COptimizer optimizer = c_optimizer(words_of(rank, more), x, store.get());
    for (int steps = 0; end.step == SOTTO_OK && steps < 4 + 3 * rank; ++steps) {
      end.step = step(optimizer.get(), rank, x);
    }
    end.error = end.step == SOTTO_OK ? "" : sotto_last_error();
    end.finish =
        sotto_optimizer_finish_with_mean(optimizer.get(), end.mean.data(), kDimension, nullptr);
    end.error += end.finish == SOTTO_OK ? "" : sotto_last_error();
    end.rounds = round_of(optimizer.get());
    return {};
  });
  return ends;
}

}  // namespace

TEST_CASE("C: nodes with different amounts of data end as join says, or are told") {
  for (const End& end : uneven({"join", "zeros"})) {
    CAPTURE(end.error);
    CHECK(end.finish == SOTTO_OK);
    CHECK(end.rounds == 10);
  }
  const auto shortest = uneven({"join", "stop", "algorithm", "allreduce"});
  for (const End& end : shortest) {
    CAPTURE(end.error);
    CHECK(end.finish == SOTTO_OK);
    CHECK(end.rounds == shortest[0].rounds);
    CHECK(end.rounds <= 6);
    CHECK(end.mean == shortest[0].mean);
  }
  CHECK(shortest[2].step == SOTTO_ENDED);
  for (const End& end : uneven({})) {
    CAPTURE(end.error);
    CHECK((end.step == SOTTO_UNEXPECTED || end.finish == SOTTO_UNEXPECTED));
  }
}

TEST_CASE(
    "C: one node that asks for the end ends all after one round, and the state can be saved") {
  const CStore store = c_store();
  std::vector<std::uint64_t> rounds(kNodes);
  (void)play(kNodes, [&](sotto::Rank rank) -> sotto::Status {
    std::vector<float> x(kDimension);
    const COptimizer optimizer = c_optimizer(words_of(rank, {}), x, store.get());
    sotto_status status = SOTTO_OK;
    while (status == SOTTO_OK) {
      if (rank == 1 && round_of(optimizer.get()) == 7) {
        CHECK(sotto_optimizer_ask_to_end(optimizer.get()) == SOTTO_OK);
      }
      status = step(optimizer.get(), rank, x);
    }
    CHECK(status == SOTTO_ENDED);
    CHECK(std::string(sotto_last_error()).find("node 1 was told to stop") != std::string::npos);
    CHECK(std::string(sotto_status_name(status)) == "ended");
    CHECK(sotto_optimizer_drain(optimizer.get()) == SOTTO_OK);
    void* state = nullptr;
    std::size_t size = 0;
    CHECK(sotto_optimizer_save(optimizer.get(), &state, &size) == SOTTO_OK);
    sotto_free(state);
    CHECK(sotto_optimizer_finish(optimizer.get()) == SOTTO_OK);
    rounds[static_cast<std::size_t>(rank)] = round_of(optimizer.get());
    return {};
  });
  CHECK(std::ranges::count(rounds, rounds[0]) == kNodes);
  CHECK(rounds[0] >= 7);
}

TEST_CASE("C: where an update overflows all nodes end at once with its words") {
  const CStore store = c_store();
  std::atomic<int> told = 0;
  c_play(kNodes, [&](int rank) {
    std::vector<float> x(kDimension);
    const COptimizer optimizer =
        c_optimizer(words_of(rank, {"momentum", "0.9", "algorithm", "dpsgd"}), x, store.get());
    sotto_status status = SOTTO_OK;
    for (int round = 0; status == SOTTO_OK; ++round) {
      const std::vector<float> gradient(kDimension, rank == 1 && round == 3 ? 3.4e38F : 1e37F);
      status = sotto_optimizer_step(optimizer.get(), gradient.data(), gradient.size());
    }
    CHECK(status == SOTTO_NON_FINITE);
    CHECK(says("node 1, round 3"));
    CHECK(says("with a lower learning rate"));
    ++told;
    while (told < kNodes) {  // the optimizer lives until all know
      std::this_thread::yield();
    }
  });
}

TEST_CASE("C: a learning rate that was set later is saved, loaded and reported") {
  std::vector<float> x(kDimension);
  const COptimizer first = c_optimizer({"nodes", "1", "lr", "0.5", "momentum", "0.9"}, x);
  REQUIRE(first);
  CHECK(step(first.get(), 1, x) == SOTTO_OK);
  CHECK(sotto_optimizer_set_learning_rate(first.get(), 0.0625) == SOTTO_OK);
  CHECK(step(first.get(), 1, x) == SOTTO_OK);
  CHECK(sotto_optimizer_drain(first.get()) == SOTTO_OK);
  void* state = nullptr;
  std::size_t size = 0;
  REQUIRE(sotto_optimizer_save(first.get(), &state, &size) == SOTTO_OK);
  CHECK(step(first.get(), 1, x) == SOTTO_OK);
  std::vector<float> y(kDimension);
  const COptimizer second = c_optimizer({"nodes", "1", "lr", "0.5", "momentum", "0.9"}, y);
  REQUIRE(sotto_optimizer_load(second.get(), static_cast<char*>(state), size) == SOTTO_OK);
  sotto_free(state);
  char* text = nullptr;
  REQUIRE(sotto_optimizer_report(second.get(), &text) == SOTTO_OK);
  const auto report = c_json(text);
  CHECK(report.at("learning_rate") == 0.0625);
  CHECK(report.at("settings").at("lr") == "0.0625");
  CHECK(step(second.get(), 1, y) == SOTTO_OK);
  CHECK(y == x);
}

}  // namespace sotto::test::c_ends_test

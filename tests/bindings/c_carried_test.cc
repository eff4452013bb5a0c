// Values that go along with a model, through sotto.h.
#include <cstddef>
#include <string>
#include <vector>

#include "bindings/c_node.h"

namespace sotto::test::c_carried_test {

namespace {

constexpr int kCarryingNodes = 3;
constexpr std::size_t kWeights = 4;

Words carrying_words(int rank) {
  return {"nodes", std::to_string(kCarryingNodes), "rank", std::to_string(rank), "lr", "0.05"};
}

sotto_status a_step(const COptimizer& optimizer) {
  const std::vector<float> gradient(kWeights, 0.5F);
  return sotto_optimizer_step(optimizer.get(), gradient.data(), gradient.size());
}

}  // namespace

TEST_CASE("values that are carried start as node 0's, and their mean stands behind the model's") {
  const CStore store = c_store();
  c_play(kCarryingNodes, [&](int rank) {
    std::vector<float> x(kWeights, 1);
    std::vector<float> carried = {static_cast<float>(7 + rank), -1};
    const COptimizer optimizer = c_optimizer(carrying_words(rank), x, store.get());
    REQUIRE(optimizer != nullptr);
    sotto_optimizer* const node = optimizer.get();
    CHECK(sotto_optimizer_carry_along(node, carried.data(), carried.size()) == SOTTO_OK);
    CHECK(sotto_optimizer_take_from_node_0(node, carried.data(), carried.size()) == SOTTO_OK);
    CHECK(carried == std::vector<float>{7, -1});
    REQUIRE(a_step(optimizer) == SOTTO_OK);
    carried[0] = static_cast<float>(3 * rank);
    std::vector<float> mean(kWeights + 2);
    CHECK(sotto_optimizer_mean(node, mean.data(), kWeights, nullptr) == SOTTO_REFUSED);
    CHECK(says("2 values go along"));
    CHECK(sotto_optimizer_mean(node, mean.data(), mean.size(), nullptr) == SOTTO_OK);
    CHECK(mean[kWeights] == 3);
    CHECK(mean[kWeights + 1] == -1);
    CHECK(carried[0] == static_cast<float>(3 * rank));
    carried[1] = static_cast<float>(rank);
    CHECK(sotto_optimizer_finish_with_mean(node, mean.data(), mean.size(), nullptr) == SOTTO_OK);
    CHECK(mean[kWeights + 1] == 1);
    CHECK(sotto_optimizer_take_from_node_0(node, carried.data(), carried.size()) == SOTTO_REFUSED);
  });
}

TEST_CASE("values are carried once, before the nodes meet, which compare how many they are") {
  std::vector<float> x(kWeights), carried(3);
  CHECK(sotto_optimizer_carry_along(nullptr, carried.data(), 3) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_take_from_node_0(nullptr, carried.data(), 3) == SOTTO_REFUSED);
  const Words alone = {"nodes", "1"};
  const COptimizer first = c_optimizer(alone, x);
  CHECK(sotto_optimizer_carry_along(first.get(), nullptr, 3) == SOTTO_REFUSED);
  CHECK(says("values: a null pointer is refused"));
  CHECK(sotto_optimizer_carry_along(first.get(), carried.data(), 3) == SOTTO_OK);
  CHECK(sotto_optimizer_carry_along(first.get(), carried.data(), 3) == SOTTO_REFUSED);
  CHECK(says("it comes once, before the nodes meet"));
  std::vector<float> y(kWeights);
  const COptimizer late = c_optimizer(alone, y);
  REQUIRE(a_step(late) == SOTTO_OK);
  CHECK(sotto_optimizer_carry_along(late.get(), carried.data(), 3) == SOTTO_REFUSED);
  CHECK(a_step(late) == SOTTO_OK);

  const CStore store = c_store();
  c_play(kCarryingNodes, [&](int rank) {
    std::vector<float> model(kWeights), own(rank == 1 ? 2 : 1);
    const COptimizer apart = c_optimizer(carrying_words(rank), model, store.get());
    CHECK(sotto_optimizer_carry_along(apart.get(), own.data(), own.size()) == SOTTO_OK);
    CHECK(sotto_optimizer_connect(apart.get()) == SOTTO_UNEXPECTED);
    CHECK(says("carried-values"));
  });
}

}  // namespace sotto::test::c_carried_test

#include <sotto/sim/lockstep.h>

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/topology/registry.h>

namespace sotto::test::lockstep_test {

namespace {

constexpr std::size_t kDimension = 100;

/// D-PSGD with a node for each row of `x`; node i believes in graphs[i % graphs.size()].
LockstepDriver make_driver(std::vector<std::vector<float>>& x,
                           const std::vector<std::shared_ptr<const Topology>>& graphs) {
  LockstepDriver driver;
  for (std::size_t rank = 0; rank < x.size(); ++rank) {
    AlgorithmSetup setup;
    setup.rank = static_cast<Rank>(rank);
    setup.nodes = static_cast<int>(x.size());
    setup.parameters = x[rank];
    setup.topology = graphs[rank % graphs.size()];
    setup.step_rule = make_step_rule({});
    setup.allow_contract_violation = true;
    driver.add(make_algorithm("dpsgd", std::move(setup)));
  }
  return driver;
}

std::shared_ptr<const Topology> pair_with(std::vector<WeightedEdge> edges) {
  return std::make_shared<const Topology>("pair", 2,
                                          std::vector<std::vector<WeightedEdge>>{std::move(edges)});
}

void zero_gradient(Rank, Round, std::span<const float>, std::span<float> g) {
  std::fill(g.begin(), g.end(), 0.0F);
}

}  // namespace

TEST_CASE("traffic is counted on frames as sent, headers included, by directed edge") {
  std::vector<std::vector<float>> x(5, std::vector<float>(kDimension));
  auto driver = make_driver(x, {make_topology("star", 5)});
  REQUIRE(driver.run(7, zero_gradient).ok());
  REQUIRE(driver.traffic().size() == 8);
  for (const auto& [edge, traffic] : driver.traffic()) {
    CHECK((edge.first == 0 || edge.second == 0));
    CHECK(traffic.frames == 7);
    CHECK(traffic.bytes == 7 * (64 + 4 * kDimension));
  }
  CHECK(driver.bytes_sent(0) == 4 * 7 * (64 + 4 * kDimension));
  CHECK(driver.bytes_sent(3) == 7 * (64 + 4 * kDimension));
}

TEST_CASE("the gradient is asked for once a node and round, in rank order, at the node's model") {
  std::vector<std::vector<float>> x(3, std::vector<float>(kDimension));
  auto driver = make_driver(x, {make_topology("ring", 3)});
  std::vector<std::pair<Round, Rank>> asked;
  REQUIRE(driver
              .run(4,
                   [&](Rank rank, Round round, std::span<const float> at, std::span<float> g) {
                     asked.emplace_back(round, rank);
                     CHECK(at.data() == x[static_cast<std::size_t>(rank)].data());
                     std::fill(g.begin(), g.end(), 1.0F);
                   })
              .ok());
  CHECK(asked.size() == 12);
  CHECK(std::is_sorted(asked.begin(), asked.end()));
}

TEST_CASE("a node that waits for one that does not send is a deadline, and named") {
  std::vector<std::vector<float>> x(2, std::vector<float>(kDimension));
  auto driver = make_driver(x, {pair_with({{1, 0, 0.5}}), pair_with({})});
  const Status status = driver.run(1, zero_gradient);
  CHECK(status.fault() == Fault::deadline);
  CHECK(status.message() ==
        "node 0 awaits a frame of round 0, phase 0 from node 1, which sends none");
}

TEST_CASE("a frame that nobody awaits is a fault, and named") {
  std::vector<std::vector<float>> x(2, std::vector<float>(kDimension));
  auto driver = make_driver(x, {pair_with({{0, 1, 0.5}}), pair_with({})});
  const Status status = driver.run(1, zero_gradient);
  CHECK(status.fault() == Fault::unexpected);
  CHECK(status.message() == "node 0 sends to node 1, which awaits nothing");
}

}  // namespace sotto::test::lockstep_test

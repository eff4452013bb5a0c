// DCD-PSGD: the rule, and replicas that are the models to the bit.
#include <sotto/optim/algorithms/dcd_psgd.h>

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "optim/by_the_paper.h"
#include "optim/cluster.h"
#include "optim/meeting_contract.h"

namespace sotto::test::dcd_psgd_test {

TEST_CASE("DCD is Algorithm 1 of its paper, taken down in double precision") {
  constexpr double kRate = 0.05;
  Cluster cluster(five_nodes("dcd", kRate));
  const Quadratic task(5, 8, 5);
  Rows x = rows_of(cluster.x);
  for (int t = 0; t < 60; ++t) {
    REQUIRE(cluster.driver.run(1, task).ok());
    Rows next = x;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Row half = plus(mixed(x, i), step_of(task, i, x[i], kRate), -1);
      next[i] = plus(x[i], largest(plus(half, x[i], -1), kKept));
    }
    x = next;
    REQUIRE(distance(cluster.x, x) < 1e-5);
  }
}

TEST_CASE("DCD: every replica equals the neighbour's model bit for bit for 200 rounds") {
  constexpr std::size_t kDimension = 130;
  auto specs = compressors_meeting(ContractKind::unbiased, kDimension);
  specs.emplace_back("randk:0.5");
  for (const std::string& spec : specs) {
    const auto compressor = make_compressor(spec, ContractKind::unbiased);
    if (measure_alpha(*compressor, kDimension, 20) > 1.2) {
      continue;  // DCD diverges from there on
    }
    for (const std::string topology : {"ring", "star"}) {
      CAPTURE(spec);
      CAPTURE(topology);
      Cluster cluster({.algorithm = "dcd",
                       .compressor = spec,
                       .topology = topology,
                       .nodes = 5,
                       .dimension = kDimension,
                       .step = {.learning_rate = 0.05, .momentum = 0.5}});
      const Quadratic task(5, kDimension, 3, 0.5);
      for (int t = 0; t < 200; ++t) {
        const Status status = cluster.driver.run(1, task);
        CAPTURE(status.message());
        REQUIRE(status.ok());
        for (std::size_t rank = 0; rank < 5; ++rank) {
          for (const Replica& replica : cluster.node<DcdPsgd>(rank).replicas()) {
            REQUIRE(same_bits(replica.model, cluster.x[static_cast<std::size_t>(replica.peer)]));
          }
        }
      }
    }
  }
}

}  // namespace sotto::test::dcd_psgd_test

// Sparse messages with few bits a value in place of 32: as the error of the values is fed back with
// the rest, the models end as near to the optimum.
#include <string>

#include <doctest/doctest.h>

#include "optim/cluster.h"
#include "optim/uneven.h"

namespace sotto::test::few_bits_test {

TEST_CASE("CHOCO ends as near to the optimum with values of few bits as with whole ones") {
  constexpr std::size_t kDimension = 512;
  const Uneven task(8, kDimension, 7);
  const auto excess = [&](const std::string& compressor) {
    Cluster cluster({.algorithm = "choco",
                     .compressor = compressor,
                     .dimension = kDimension,
                     .step = {.learning_rate = 0.005}});
    const double before = task.worst_excess(cluster.x);
    const Status status = cluster.driver.run(3000, task);
    CAPTURE(status.message());
    REQUIRE(status.ok());
    const double after = task.worst_excess(cluster.x);
    CHECK(after < before / 50);
    return after;
  };
  const double whole = excess("topk:0.1");
  CAPTURE(whole);
  for (const std::string few : {"topk:0.1,values=2,chunk=128", "topk:0.1,values=4,chunk=0"}) {
    CAPTURE(few);
    CHECK(excess(few) < 1.2 * whole);
  }
  // The largest fifth of a random half is not the largest tenth of all elements.
  CHECK(excess("randk:0.5/topk:0.2,values=4") < 2.5 * whole);
}

}  // namespace sotto::test::few_bits_test

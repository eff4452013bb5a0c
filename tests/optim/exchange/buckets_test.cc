// How a vector is cut, and where the frames of its pieces lie.
#include <sotto/base/buckets.h>

#include <bit>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/philox.h>

#include "optim/cluster.h"

namespace sotto::test::buckets_test {

TEST_CASE("as many buckets at most as there are, are the same buckets") {
  RandomStream random({.seed = 5});
  for (int k = 0; k < 2000; ++k) {
    const std::size_t elements = random.below(1 << 20);
    const auto most = static_cast<std::uint32_t>(1 + random.below(300));
    CAPTURE(elements);
    CAPTURE(most);
    const Buckets buckets(elements, most);
    REQUIRE(buckets.count() <= most);
    const Buckets again(elements, static_cast<std::uint32_t>(buckets.count()));
    REQUIRE(again.count() == buckets.count());
    CHECK(again.length(0) == buckets.length(0));
    CHECK(buckets.end(buckets.count() - 1) == elements);
  }
}

TEST_CASE("frames start on a cache line, in every bucket") {
  constexpr std::size_t kDimension = 2 * 4096 + 37;
  constexpr std::uintptr_t kLine = 64;
  const ClusterOptions options{
      .algorithm = "dcd", .nodes = 2, .dimension = kDimension, .buckets = 3};
  std::vector<float> x(kDimension, 1);
  const auto node = make_algorithm("dcd", node_setup(options, 0, x, cluster_topology(options)));
  Exchange out;
  node->begin_round();
  REQUIRE_FALSE(*node->next_exchange(out));
  const std::vector<float> gradient(kDimension, 0.5F);  // read until the last bucket has it
  REQUIRE(node->take_gradient(gradient).ok());
  for (int posted = 0; posted < 4; ++posted) {
    if (posted > 0) {
      CHECK(std::bit_cast<std::uintptr_t>(out.sends.at(0).frame.data()) % kLine == 0);
      CHECK(std::bit_cast<std::uintptr_t>(out.receives.at(0).buffer.data()) % kLine == 0);
    }
    const auto more = node->next_exchange(out);
    REQUIRE(more.ok());
    CHECK(*more == (posted < 3));
  }
}

}  // namespace sotto::test::buckets_test

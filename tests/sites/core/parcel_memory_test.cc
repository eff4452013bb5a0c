// How much memory a site's parcels take.
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/compress/registry.h>
#include <sotto/optim/step_rule.h>
#include <sotto/sites/core/mixing/gossip_mixing.h>
#include <sotto/sites/core/mixing/push_sum_mixing.h>

namespace sotto::test::parcel_memory_test {

using namespace sotto::sites;

namespace {

constexpr std::size_t kDimension = 100'000;

MixingSetup setup_of(std::vector<float>& parameters) {
  return {.parameters = parameters,
          .layout = complete_layout({}, parameters.size()),
          .step_rule = make_step_rule({}),
          .compressor = make_compressor("sign"),
          .consensus_stepsize = 0.5};
}

}  // namespace

TEST_CASE_TEMPLATE("a compressed parcel takes no more memory than it needs", Exchange, GossipMixing,
                   PushSumMixing) {
  std::vector<float> parameters(kDimension);
  const std::vector<float> gradient(kDimension, 1);
  Exchange mixing(setup_of(parameters));
  const std::size_t added = kNobody;
  mixing.rearrange({&added, 1});
  mixing.begin();
  for (Round round = 0; round < 3; ++round) {
    REQUIRE(mixing.step(round, gradient).ok());
    std::vector<Addressee> to(1);
    REQUIRE(mixing.offer({.rank = 0, .round = round}, 1, to).ok());
    REQUIRE(to[0].payload);
    CHECK(to[0].payload->size() < kDimension / 4);
    CHECK(to[0].payload->capacity() < kDimension / 2);  // a model has four times as many bytes
  }
}

}  // namespace sotto::test::parcel_memory_test

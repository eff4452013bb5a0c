// What a member makes of gradients: nothing that compression withholds is dropped.
#include <sotto/sites/epochs/epoch_reducer.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/parameter_layout.h>
#include <sotto/base/philox.h>
#include <sotto/compress/registry.h>

namespace sotto::test::epoch_reducer_test {

using namespace sotto::sites;

TEST_CASE("epochs: what compression withholds is not dropped when an epoch ends") {
  // With errors e and ē: Σ c̄ + (1/n) Σ e + ē = Σ of the mean gradients, while
  // n nodes take part, also across the end of an epoch.
  constexpr std::size_t kDimension = 11;
  RandomStream random({.seed = 9});
  std::vector<EpochReducer> nodes;
  for (int k = 0; k < 3; ++k) {
    nodes.emplace_back(kDimension, make_compressor("topk:0.3", ContractKind::any), 1);
  }
  std::vector<double> given(kDimension);
  std::vector<double> received(kDimension);
  const auto steps = [&](Epoch epoch, Round first, Round count, double factor) {
    const std::size_t n = nodes.size();
    for (Round step = first; step < first + count; ++step) {
      std::vector<EpochPlace> places;
      for (std::size_t k = 0; k < n; ++k) {
        places.push_back({epoch, step, k, n});
        std::vector<float> g(kDimension);
        for (std::size_t j = 0; j < kDimension; ++j) {
          g[j] = static_cast<float>(factor * random.normal());
          given[j] += static_cast<double>(g[j]) / static_cast<double>(n);
        }
        for (std::size_t chunk = 0; chunk < n; ++chunk) {  // in another order at each node
          REQUIRE(nodes[k].encode(places[k], (k + chunk) % n, g).ok());
        }
      }
      StepMean mean{.step = step, .parts = {}};
      for (std::size_t owner = 0; owner < n; ++owner) {
        std::map<std::uint16_t, SharedBytes> chunks;
        for (std::size_t k = 0; k < n; ++k) {
          chunks[static_cast<std::uint16_t>(k)] = nodes[k].encoding(owner);
        }
        auto part = nodes[owner].make(places[owner], chunks);
        REQUIRE(part.ok());
        mean.parts.push_back(*part);
      }
      std::vector<float> c(kDimension);
      REQUIRE(nodes[0].decode(mean, c));
      for (std::size_t j = 0; j < kDimension; ++j) {
        received[j] += static_cast<double>(c[j]);
      }
      for (EpochReducer& node : nodes) {
        CHECK(node.commit(mean, true));
      }
    }
  };
  steps(1, 1, 20, 1);
  steps(2, 21, 20, 1);   // owners fold what they withheld into their own errors
  steps(2, 41, 400, 0);  // what was withheld comes out in the end
  for (std::size_t j = 0; j < kDimension; ++j) {
    CHECK(received[j] == doctest::Approx(given[j]).epsilon(1e-3).scale(1));
  }
}

TEST_CASE(
    "epochs: what was encoded in an epoch that has ended is no error of the next one's mean") {
  constexpr std::size_t kElements = 64;
  const std::vector<float> gradient(kElements, 0.3F);
  const EpochPlace old{.epoch = 1, .step = 1, .index = 0, .members = 2};
  const auto reducer = [] {
    return EpochReducer(kElements, make_compressor("sign", ContractKind::any), 3);
  };
  EpochReducer other = reducer();
  std::map<std::uint16_t, SharedBytes> first;
  REQUIRE(other.encode({.epoch = 2, .step = 1, .index = 0, .members = 2}, 0, gradient).ok());
  first.emplace(std::uint16_t{0}, other.encoding(0));
  const auto made = other.make({.epoch = 2, .step = 1, .index = 0, .members = 2}, first);
  REQUIRE(made.ok());
  EpochReducer late = reducer();  // its chunks of the old epoch went out, and none in the new one
  REQUIRE(late.encode(old, 0, gradient).ok());
  late.begin_epoch();
  CHECK(!late.commit({.step = 1, .parts = {*made, *made}}, false));
  // Nothing was withheld, so that its next gradient is sent as that of a node which begins.
  const EpochPlace after{.epoch = 2, .step = 2, .index = 1, .members = 2};
  REQUIRE(late.encode(after, 0, gradient).ok());
  EpochReducer fresh = reducer();
  REQUIRE(fresh.encode(after, 0, gradient).ok());
  CHECK(std::ranges::equal(late.encoding(0), fresh.encoding(0)));
}

TEST_CASE("epochs: a compressor that goes by tensors is refused") {
  ParameterLayout layout;
  append_block(layout, "w", {2, 3});
  const auto make = [&] {
    const EpochReducer reducer(
        6, make_compressor("lowrank:1", ContractKind::any, host_ops(), layout), 1);
  };
  CHECK_THROWS_WITH_AS(make(), doctest::Contains("chunk"), Error);
}

}  // namespace sotto::test::epoch_reducer_test

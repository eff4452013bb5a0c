// How far a parcel may pull where a compressor loses something: by a vote of the neighbours.
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/core/pull_bound.h>

namespace sotto::test::pull_bound_test {

using sotto::sites::PullBound;

namespace {

/// A bound at a site that steps, with a lossy compressor; its steps are short.
PullBound lossy() {
  PullBound bound({}, 0.5);
  std::vector<float> z = {1, 1};
  bound.stepping(z);
  z[0] += 1e-6F;
  bound.arrived(z);
  return bound;
}

}  // namespace

TEST_CASE("a neighbour that sends more often than others does not lift the median of pulls") {
  PullBound bound = lossy();
  for (int round = 0; round < 400; ++round) {
    bound.pulled(0, 1000);  // in every round, as no honest one does
    if (round % 20 == 0) {
      bound.pulled(1, 1);
      bound.pulled(2, 2);
    }
  }
  CHECK(bound.at(1).longest == PullBound::kUsual * 2);
}

TEST_CASE("the latest pulls of a neighbour stay with it when the list changes") {
  PullBound bound = lossy();
  for (int round = 0; round < 20; ++round) {
    bound.pulled(0, 5);
    bound.pulled(1, 3);
  }
  CHECK(bound.at(1).longest == PullBound::kUsual * 3);
  bound.rearrange(std::vector<std::size_t>{~std::size_t{0}, 0});
  CHECK(bound.at(1).longest == PullBound::kUsual * 5);
  bound.rearrange({});
  CHECK(bound.at(1).longest == doctest::Approx(10));  // by the model's length, as before any pull
}

TEST_CASE("a neighbour that has been silent for long has no voice in the median of pulls") {
  PullBound bound = lossy();
  for (int round = 0; round < 20; ++round) {
    bound.pulled(0, 1);
    bound.pulled(1, 1);
    bound.pulled(2, 50);
  }
  CHECK(bound.at(1).longest == PullBound::kUsual * 1);
  for (std::uint64_t round = 0; round <= 3 * PullBound::kSilent; ++round) {
    bound.pulled(2, 50);  // the others have ended
  }
  CHECK(bound.at(1).longest == PullBound::kUsual * 50);
  bound.pulled(0, 1);
  CHECK(bound.at(1).longest == PullBound::kUsual * 1);
}

}  // namespace sotto::test::pull_bound_test

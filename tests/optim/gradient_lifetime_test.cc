// How long a gradient must stay: until the parameters of the next round are there, and no longer.
#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/optim/wrappers/forwarding_algorithm.h>

#include "optim/cluster.h"

namespace sotto::test::gradient_lifetime_test {

namespace {

constexpr std::size_t kNodes = 4;
constexpr std::size_t kDimension = 2 * 4096 + 37;  // three buckets

/// Hands on a copy of the gradient, which turns into NaNs as soon as it may go.
class Fleeting final : public ForwardingAlgorithm {
 public:
  using ForwardingAlgorithm::ForwardingAlgorithm;

  Status take_gradient(std::span<const float> gradient) override {
    gradient_.assign(gradient.begin(), gradient.end());
    return gone_if_ready(inner().take_gradient(gradient_));
  }
  Result<bool> next_exchange(Exchange& out) override {
    return gone_if_ready(inner().next_exchange(out));
  }
  Status complete(const Exchange& exchange) override {
    return gone_if_ready(inner().complete(exchange));
  }

 private:
  template <typename T>
  T gone_if_ready(T result) {
    if (inner().parameters_ready()) {
      std::ranges::fill(gradient_, std::numeric_limits<float>::quiet_NaN());
    }
    return result;
  }

  std::vector<float> gradient_;
};

void check_same(const ClusterOptions& options) {
  CAPTURE(options.algorithm);
  CAPTURE(options.buckets);
  CAPTURE(options.delayed_gradient);
  CAPTURE(options.communication_interval);
  CAPTURE(options.step.momentum);
  const Quadratic task(kNodes, kDimension, 3, 0.1);
  Cluster kept(options);
  Cluster fleeting(options,
                   [](auto inner) { return std::make_unique<Fleeting>(std::move(inner)); });
  const Status one = kept.driver.run(6, task);
  const Status other = fleeting.driver.run(6, task);
  REQUIRE_MESSAGE(one.ok(), one.message());
  REQUIRE_MESSAGE(other.ok(), other.message());
  for (std::size_t node = 0; node < kNodes; ++node) {
    CHECK(same_bits(kept.x[node], fleeting.x[node]));
  }
}

}  // namespace

TEST_CASE("a gradient may go as soon as the next parameters are there") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const double momentum : {0.0, 0.9}) {
      ClusterOptions options{.algorithm = std::string(info.name),
                             .nodes = kNodes,
                             .dimension = kDimension,
                             .step = {.learning_rate = 0.02, .momentum = momentum}};
      check_same(options);
      options.communication_interval = 2;
      check_same(options);
      if (info.takes_fragments()) {
        options.streaming = {.fragments = 2};
        check_same(options);
        options.streaming = {.delay = 1};
        check_same(options);
        options.streaming = {};
      }
      if (info.takes_outer_after_mixing()) {
        options.outer_after_mixing = true;
        check_same(options);
        options.outer_after_mixing = false;
      }
      options.communication_interval = 1;
      if (info.takes_buckets()) {
        options.buckets = 3;
        check_same(options);
      }
      if (info.takes_delayed_gradients()) {
        options.delayed_gradient = true;
        check_same(options);
      }
    }
  }
}

}  // namespace sotto::test::gradient_lifetime_test

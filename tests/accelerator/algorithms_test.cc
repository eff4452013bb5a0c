// Algorithms whose vectors lie on a device leave the bits that they leave on the host, and touch
// those vectors through the device alone: the fake one's memory cannot be touched by the host.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "accelerator/device.h"
#include "optim/cluster.h"

#include <sotto/base/error.h>
#include <sotto/compress/cuda/accelerator.h>
#include <sotto/optim/wrappers/forwarding_algorithm.h>

namespace sotto::test::algorithms_test {

namespace {

constexpr Round kRounds = 12;

/// A node on a device, as a driver with the host's gradients sees it.
class OnDevice final : public ForwardingAlgorithm {
 public:
  OnDevice(const ClusterOptions& options, std::size_t rank, std::span<const float> start,
           const std::shared_ptr<const Topology>& topology)
      : OnDevice(cuda::make_accelerator(stream()), options, rank, start, topology) {}

  std::span<const float> parameters() const override {
    accelerator_->lead_caller();
    finish(stream());
    here_ = x_->read();
    return here_;
  }
  Status take_gradient(std::span<const float> gradient) override {
    gradient_->write(gradient);
    return ForwardingAlgorithm::take_gradient(gradient_->there());
  }

 private:
  OnDevice(std::shared_ptr<Accelerator> accelerator, const ClusterOptions& options,
           std::size_t rank, std::span<const float> start,
           const std::shared_ptr<const Topology>& topology)
      : OnDevice(accelerator, std::make_unique<DeviceFloats>(start.size()), options, rank, start,
                 topology) {}
  OnDevice(std::shared_ptr<Accelerator> accelerator, std::unique_ptr<DeviceFloats> x,
           const ClusterOptions& options, std::size_t rank, std::span<const float> start,
           const std::shared_ptr<const Topology>& topology)
      : ForwardingAlgorithm(build(accelerator, *x, options, rank, start, topology)),
        accelerator_(std::move(accelerator)),
        x_(std::move(x)),
        gradient_(std::make_unique<DeviceFloats>(start.size())) {}

  static std::unique_ptr<Algorithm> build(const std::shared_ptr<Accelerator>& accelerator,
                                          const DeviceFloats& x, const ClusterOptions& options,
                                          std::size_t rank, std::span<const float> start,
                                          const std::shared_ptr<const Topology>& topology) {
    x.write(start);
    auto setup = node_setup(options, rank, x.there(), topology, accelerator->ops());
    setup.accelerator = accelerator;
    return make_algorithm(spec_of(options), std::move(setup));
  }
  static cuda::Stream stream() {
    static const cuda::Stream one = test::make_stream();
    return one;
  }

  std::shared_ptr<Accelerator> accelerator_;
  std::unique_ptr<DeviceFloats> x_;
  std::unique_ptr<DeviceFloats> gradient_;
  mutable std::vector<float> here_;
};

/// Nodes of which some are on devices.
struct Mixed {
  Mixed(const ClusterOptions& options, const std::vector<std::vector<float>>& start, int every)
      : driver(options.delivery), x(start) {
    const auto topology = cluster_topology(options);
    for (std::size_t rank = 0; rank < options.nodes; ++rank) {
      if (rank % static_cast<std::size_t>(every) == 0) {
        driver.add(std::make_unique<OnDevice>(options, rank, start[rank], topology));
      } else {
        driver.add(make_algorithm(spec_of(options), node_setup(options, rank, x[rank], topology)));
      }
    }
  }

  LockstepDriver driver;
  std::vector<std::vector<float>> x;
};

/// Gradients that are zero at first: norms then need a second look.
void sometimes_zero(Rank rank, Round round, std::span<const float> x, std::span<float> g) {
  std::ranges::transform(
      x, g.begin(), [&](float value) { return round < 2 ? 0 : value - static_cast<float>(rank); });
}

void check_same(const ClusterOptions& options, int every = 1, const GradientFunction& gradient = {},
                Round rounds = kRounds) {
  CAPTURE(options.algorithm);
  CAPTURE(options.compressor);
  CAPTURE(options.topology);
  CAPTURE(options.buckets);
  CAPTURE(options.step.rule);
  CAPTURE(every);
  Cluster host(options);
  Mixed there(options, host.x, every);
  const Quadratic quadratic(options.nodes, options.dimension, 3, 0.1);
  const GradientFunction task = gradient ? gradient : GradientFunction(quadratic);
  REQUIRE(host.driver.run(rounds, task).ok());
  const Status status = there.driver.run(rounds, task);
  REQUIRE_MESSAGE(status.ok(), status.message());
  for (std::size_t rank = 0; rank < options.nodes; ++rank) {
    CAPTURE(rank);
    CHECK(same_bits(host.driver.node(rank).parameters(), there.driver.node(rank).parameters()));
    // The state is the same too, and what one has saved the other takes back.
    ByteBuffer here_state;
    ByteBuffer there_state;
    host.driver.node(rank).save(here_state);
    there.driver.node(rank).save(there_state);
    CHECK(std::ranges::equal(here_state.bytes(), there_state.bytes()));
    ByteReader in(here_state.bytes());
    CHECK(there.driver.node(rank).load(in).ok());
  }
  REQUIRE(host.driver.run(3, task).ok());
  REQUIRE(there.driver.run(3, task).ok());
  for (std::size_t rank = 0; rank < options.nodes; ++rank) {
    CHECK(same_bits(host.driver.node(rank).parameters(), there.driver.node(rank).parameters()));
  }
}

ClusterOptions small(std::string_view algorithm) {
  ClusterOptions options;
  options.algorithm = algorithm;
  options.nodes = 4;
  options.dimension = 300;
  options.step.learning_rate = 0.02;
  options.allow_contract_violation = true;
  return options;
}

/// A compressor that the algorithm takes and devices have.
std::string compressor_for(const AlgorithmInfo& info) {
  switch (info.contract) {
    case ContractKind::exact:
      return "none";
    case ContractKind::unbiased:
      return "quant:4,chunk=64";
    case ContractKind::unbiased_absolute:
      return "grid:8:0.05";
    default:
      return "sign,chunk=64";
  }
}

}  // namespace

TEST_CASE("algorithms on a device leave the bits of the host, alone and beside nodes on the host") {
  SOTTO_NEEDS_DEVICE();
  for (const AlgorithmInfo& info : algorithms()) {
    if (!info.accelerated) {
      continue;
    }
    for (const std::string topology : {"ring", "one-peer-exponential"}) {
      ClusterOptions options = small(info.name);
      options.topology = topology;
      if (info.graph == GraphNeed::symmetric && topology != "ring") {
        options.topology = info.takes_changing_graphs() ? "matching" : "complete";
      }
      options.compressor = compressor_for(info);
      if (info.has("eta")) {
        options.algorithm += ":eta=0.3";
      }
      check_same(options);
      check_same(options, 2);
      options.delivery = Delivery::late;
      check_same(options);
    }
  }
}

TEST_CASE("step rules, compressors, buckets and local steps on a device leave the host's bits") {
  SOTTO_NEEDS_DEVICE();
  ClusterOptions options = small("dcd");
  for (const std::string compressor : {"quant:8", "quant:2", "fp16", "bf16", "none", "sign"}) {
    options.compressor = compressor;
    check_same(options);
  }
  options.compressor = "quant:8";
  for (const std::string rule : {"sgd", "adam", "adamw", "lars", "lamb", "quasi-global"}) {
    options.step = {.rule = rule, .learning_rate = 0.02, .weight_decay = 0.01};
    options.step.momentum = rule == "quasi-global" ? 0.9 : 0;
    check_same(options);
    options.step.clip_norm = 0.5;
    check_same(options);
    check_same(options, 1, sometimes_zero);
  }
  options.step = {.learning_rate = 0.02, .momentum = 0.9, .nesterov = true};
  check_same(options);

  check_same(options, 1, {}, 70);  // models are looked at as a whole every 64 rounds

  for (const std::string algorithm : {"choco", "deepsqueeze", "ef21"}) {
    options.algorithm = algorithm;
    for (const std::string compressor : {"topk:0.1", "topk:1", "topk:0.001"}) {
      options.compressor = compressor;
      check_same(options);
      check_same(options, 2);
    }
  }

  options.dimension = 9000;
  for (const std::string algorithm : {"dcd", "dpsgd", "ecd", "choco", "deepsqueeze", "pushsum"}) {
    options.algorithm = algorithm;
    options.compressor = compressor_for(algorithm_info(algorithm));
    options.buckets = 3;
    check_same(options);
    if (algorithm_info(algorithm).takes_delayed_gradients()) {
      options.delayed_gradient = true;
      check_same(options);
      options.delayed_gradient = false;
    }
  }
  options.dimension = 300;
  options.buckets = 1;
  options.algorithm = "choco";
  options.compressor = "sign";
  options.delayed_gradient = true;
  check_same(options);
  options.delayed_gradient = false;
  options.communication_interval = 3;
  check_same(options);
  options.outer_after_mixing = true;
  check_same(options);
  options.outer_after_mixing = false;
  options.algorithm = "allreduce";
  options.compressor = "none";
  options.streaming = {.fragments = 3, .mix = {.own = 0.5}};
  check_same(options);
  options.streaming = {.delay = 2, .mix = {.carry = true}};
  check_same(options);
}

TEST_CASE(
    "a node on a device and one on the host leave the bits of two on the host for 50 rounds") {
  SOTTO_NEEDS_DEVICE();
  for (const auto& [algorithm, compressor] :
       {std::pair{"dcd", "quant:8"}, std::pair{"dcd", "quant:4"}, std::pair{"choco", "sign"},
        std::pair{"dpsgd", "none"}, std::pair{"allreduce", "none"}}) {
    ClusterOptions options = small(algorithm);
    options.nodes = 2;
    options.dimension = 5000;
    options.compressor = compressor;
    if (options.algorithm == "choco") {
      options.algorithm += ":eta=0.3";
    }
    check_same(options, 2, {}, 50);
  }
}

TEST_CASE("a gradient that is not finite is named as on the host") {
  SOTTO_NEEDS_DEVICE();
  ClusterOptions options = small("choco");
  options.compressor = "sign";
  Cluster host(options);
  Mixed there(options, host.x, 1);
  const auto bad = [](Rank rank, Round round, std::span<const float> x, std::span<float> g) {
    std::ranges::copy(x, g.begin());
    if (rank == 2 && round == 1) {
      g[7] = std::numeric_limits<float>::infinity();
    }
  };
  const Status here = host.driver.run(3, bad);
  const Status found = there.driver.run(3, bad);
  CHECK(here.fault() == Fault::non_finite);
  CHECK(found.fault() == Fault::non_finite);
  CHECK(found.message() == here.message());
}

TEST_CASE("what only hosts can do is refused on a device, and says what would do") {
  SOTTO_NEEDS_DEVICE();
  const auto accelerator = cuda::make_accelerator(nullptr);
  const auto refusal = [&](const ClusterOptions& options) -> std::string {
    const DeviceFloats x(options.dimension);
    x.write(std::vector<float>(options.dimension, 1));
    auto setup = node_setup(options, 0, x.there(), cluster_topology(options), accelerator->ops());
    setup.accelerator = accelerator;
    try {
      make_algorithm(spec_of(options), std::move(setup));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal(small("powersgd")).find("dcd") != std::string::npos);
  ClusterOptions options = small("choco");
  options.compressor = "outlier:4";
  CHECK(refusal(options).find("outlier:4") != std::string::npos);
  options.compressor = "sign";
  CHECK(refusal(options).empty());
  const auto not_finite = [&] {
    const DeviceFloats x(options.dimension);  // NaNs
    auto setup = node_setup(options, 0, x.there(), cluster_topology(options), accelerator->ops());
    setup.accelerator = accelerator;
    make_algorithm(spec_of(options), std::move(setup));
  };
  CHECK_THROWS_WITH_AS(not_finite(), doctest::Contains("300 elements are not finite"), Error);
}

}  // namespace sotto::test::algorithms_test

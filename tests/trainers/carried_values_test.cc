// Values that no step moves and that belong to the model: averaged with it, and given by node 0.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/trainers/optimizer.h>

#include "trainers/nodes.h"

namespace sotto::test::carried_values_test {

namespace {

constexpr int kNodes = 3;
constexpr std::size_t kDimension = 5;

Status steps(Optimizer& optimizer, Round until) {
  std::vector<float> gradient(kDimension, 0.25F);
  Status status;
  while (status.ok() && optimizer.round() < until) {
    status = optimizer.begin_step();
    status = status.ok() ? optimizer.step(gradient) : status;
  }
  return status;
}

}  // namespace

TEST_CASE("carried values: their mean stands behind the model's, and node 0 gives their start") {
  for (const bool weighted : {false, true}) {
    const auto store = make_memory_store();
    const auto statuses = play(kNodes, [&](Rank rank) -> Status {
      auto options = options_for(kNodes, store);
      options.algorithm = "allreduce";
      options.rank = rank;
      if (weighted) {
        options.weight = rank == 0 ? 2 : 1;
        options.communication_interval = 2;  // what nodes moved is weighted, and so are the values
      }
      std::vector<float> model(kDimension, 1);
      std::vector<float> carried = {static_cast<float>(rank), 10 + static_cast<float>(rank)};
      Optimizer optimizer(options, model);
      optimizer.carry_along(carried);
      if (Status status = optimizer.take_from_node_0(carried); !status.ok()) {
        return status;
      }
      CHECK(carried == std::vector<float>{0, 10});
      carried[0] = static_cast<float>(4 * rank);
      Status status = steps(optimizer, 2);
      std::vector<float> mean(kDimension + 2);
      const auto distance = status.ok() ? optimizer.mean_model(mean) : status;
      if (!distance.ok()) {
        return distance.status();
      }
      CHECK(*distance == 0);  // of the model alone
      CHECK(mean[0] == model[0]);
      CHECK(mean[kDimension] == (weighted ? 3 : 4));
      CHECK(mean[kDimension + 1] == 10);
      CHECK(carried[0] == static_cast<float>(4 * rank));
      std::vector<float> shorter(kDimension);
      CHECK_THROWS_AS((void)optimizer.mean_model(shorter), Error);
      return optimizer.finish_with_mean(mean).status();
    });
    for (const Status& status : statuses) {
      CHECK_MESSAGE(status.ok(), status.message());
    }
  }
}

TEST_CASE("carried values: nodes that are out of data bring theirs, and other lengths are faults") {
  const auto store = make_memory_store();
  const auto statuses = play(kNodes, [&](Rank rank) -> Status {
    auto options = options_for(kNodes, store);
    options.join = Join::zeros;
    options.rank = rank;
    std::vector<float> model(kDimension, 1);
    const std::vector<float> carried = {static_cast<float>(3 * rank)};
    Optimizer optimizer(options, model);
    optimizer.carry_along(carried);
    Status status = steps(optimizer, rank == 2 ? 1 : 4);
    std::vector<float> mean(kDimension + 1);
    if (status.ok() && rank != 2) {
      status = optimizer.mean_model(mean).status();
      CHECK(mean[kDimension] == 3);
    }
    return status.ok() ? optimizer.finish() : status;
  });
  for (const Status& status : statuses) {
    CHECK_MESSAGE(status.ok(), status.message());
  }

  const auto other = make_memory_store();
  const auto faults = play(2, [&](Rank rank) -> Status {
    auto options = options_for(2, other);
    options.rank = rank;
    std::vector<float> model(kDimension, 1);
    const std::vector<float> carried(rank == 0 ? 1 : 2);
    Optimizer optimizer(options, model);
    optimizer.carry_along(carried);
    std::vector<float> mean(kDimension + carried.size());
    return optimizer.mean_model(mean).status();
  });
  for (const Status& fault : faults) {
    CAPTURE(fault.message());
    CHECK_FALSE(fault.ok());
    CHECK(fault.message().find("carried-values") != std::string::npos);
  }
}

}  // namespace sotto::test::carried_values_test

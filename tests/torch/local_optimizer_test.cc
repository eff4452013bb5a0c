// A torch optimizer as a step rule.
#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <sotto/trainers/torch/local_optimizer.h>

#include "torch/nets.h"

using namespace torch_test;

namespace {

/// SGD around the parameters of a net, as a rule.
struct LocalRule {
  LocalRule() { rule.resize(flat.layout()); }

  /// The direction of a gradient of ones: whole, or tensor by tensor, the last one first.
  std::vector<float> direction(sotto::Round round, bool by_parts, sotto::Status* status) {
    const std::vector<float> gradient(flat.values().size(), 1);
    std::vector<float> d(gradient.size());
    if (!by_parts) {
      *status = rule.direction(round, flat.values(), gradient, d);
      return d;
    }
    rule.begin_parts(round);
    for (std::size_t i = flat.layout().size(); i > 0 && status->ok(); --i) {
      const auto& tensor = flat.layout()[i - 1];
      *status = rule.direction_part(tensor.offset, tensor.of(flat.values()),
                                    tensor.of(std::span(gradient)), tensor.of(std::span(d)));
    }
    return d;
  }

  Net net = make_net();
  torch::optim::SGD sgd{net->parameters(), torch::optim::SGDOptions(1)};
  sotto::torch::ParameterGroups groups = std::exchange(sgd.param_groups(), {});
  sotto::torch::ParameterStates states = std::exchange(sgd.state(), {});
  sotto::torch::FlatParameters flat{sotto::torch::parameters_in(groups), net->named_parameters()};
  sotto::torch::LocalOptimizer rule{sgd, groups, states, flat};
};

}  // namespace

TEST_CASE("a schedule sets what the groups say before a step in parts as before a whole one") {
  for (const bool by_parts : {false, true}) {
    CAPTURE(by_parts);
    LocalRule made;
    std::vector<sotto::Round> asked;
    made.rule.set_schedule([&](sotto::Round round, sotto::torch::ParameterGroups& groups) {
      asked.push_back(round);
      if (round == 3) {
        throw std::runtime_error("no such rate");
      }
      groups[0].options().set_lr(0.5 / static_cast<double>(round + 1));
    });
    for (sotto::Round round = 0; round < 2; ++round) {
      sotto::Status status;
      const auto d = made.direction(round, by_parts, &status);
      REQUIRE_MESSAGE(status.ok(), status.message());
      const double rate = 0.5 / static_cast<double>(round + 1);
      CHECK(std::ranges::all_of(d, [&](float each) { return std::abs(each - rate) < 1e-6; }));
    }
    sotto::Status status;
    made.direction(3, by_parts, &status);
    CHECK(status.message().find("the schedule, in step 4: no such rate") != std::string::npos);
    CHECK(asked == std::vector<sotto::Round>{0, 1, 3});
  }
}

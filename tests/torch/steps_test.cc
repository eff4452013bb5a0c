// What a step of the adapter computes, held against torch's own optimizers.
#include "torch/nets.h"

using namespace torch_test;

namespace {

struct Case {
  const char* name;
  Maker make;
};

std::vector<Case> torch_optimizers() {
  using namespace torch::optim;
  return {
      {"sgd", maker<SGD>(SGDOptions(0.1))},
      {"momentum", maker<SGD>(SGDOptions(0.1).momentum(0.9))},
      {"decay", maker<SGD>(SGDOptions(0.1).momentum(0.9).weight_decay(0.01))},
      {"nesterov", maker<SGD>(SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(true))},
      {"dampening", maker<SGD>(SGDOptions(0.1).momentum(0.9).dampening(0.2))},
      {"adam", maker<Adam>(AdamOptions(0.01))},
      {"amsgrad", maker<Adam>(AdamOptions(0.01).weight_decay(0.1).amsgrad(true))},
      {"adamw", maker<AdamW>(AdamWOptions(0.01))},
      {"rmsprop", maker<RMSprop>(RMSpropOptions(0.01).momentum(0.9).centered(true))},
      {"adagrad", maker<Adagrad>(AdagradOptions(0.1))},
  };
}

/// All batches of one step, one under the other.
Batch together(const std::vector<Batch>& batches) {
  std::vector<torch::Tensor> x;
  std::vector<torch::Tensor> y;
  for (const Batch& batch : batches) {
    x.push_back(batch.x);
    y.push_back(batch.y);
  }
  return {torch::cat(x), torch::cat(y)};
}

/// Without the layer that gets no gradient: torch skips it, and several nodes let it decay.
std::vector<torch::Tensor> used_parameters(const Net& net) {
  auto used = net->first->parameters();
  for (const torch::Tensor& parameter : net->second->parameters()) {
    used.push_back(parameter);
  }
  return used;
}

}  // namespace

TEST_CASE("alone, the model gets the bits that the torch optimizer gives it") {
  const auto batches = make_batches(25, 8);
  for (const char* algorithm : {"allreduce", "dpsgd"}) {
    for (const Case& entry : torch_optimizers()) {
      CAPTURE(std::string(algorithm));
      CAPTURE(std::string(entry.name));
      Net plain = make_net();
      Net ours = make_net();
      const auto reference = entry.make(plain->parameters());
      DistributedOptimizer optimizer(entry.make(ours->parameters()), job(1, algorithm));
      for (const Batch& batch : batches) {
        take_step(plain, *reference, batch);
        take_step(ours, optimizer, batch);
      }
      optimizer.finish();
      CHECK(same_bits(plain, ours));
      CHECK(optimizer.node().round() == batches.size());
    }
  }
}

TEST_CASE("eight nodes that average gradients are one node with the batches of all") {
  constexpr int kNodes = 8;
  constexpr int kSteps = 20;
  const std::vector<Case> cases = {
      {"sgd",
       maker<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01))},
      {"adam", maker<torch::optim::Adam>(torch::optim::AdamOptions(0.01).eps(1e-3))},
  };
  for (const Case& entry : cases) {
    CAPTURE(std::string(entry.name));
    std::vector<Net> nets;
    std::vector<std::vector<Batch>> batches;
    for (std::uint64_t rank = 0; rank < kNodes; ++rank) {
      nets.push_back(make_net());
      batches.push_back(make_batches(kSteps, 4, 100 + rank));
    }
    const auto options = job(kNodes, "allreduce");
    const auto thrown = play(kNodes, [&](int rank) {
      Net& net = nets[static_cast<std::size_t>(rank)];
      DistributedOptimizer optimizer(entry.make(used_parameters(net)), at_rank(options, rank));
      for (const Batch& batch : batches[static_cast<std::size_t>(rank)]) {
        take_step(net, optimizer, batch);
      }
      optimizer.finish();
    });
    CHECK(thrown == std::vector<std::string>(kNodes));
    Net large = make_net();
    const auto reference = entry.make(used_parameters(large));
    for (std::size_t step = 0; step < kSteps; ++step) {
      std::vector<Batch> all;
      for (const auto& of_node : batches) {
        all.push_back(of_node[step]);
      }
      take_step(large, *reference, together(all));
    }
    CHECK(largest_difference(large, nets.front()) < 1e-6);
    CHECK(largest_difference(large, make_net()) > 0.01);
    for (const Net& net : nets) {
      CHECK(same_bits(net, nets.front()));
    }
  }
}

TEST_CASE("schedulers, groups and their learning rates are torch's") {
  const auto batches = make_batches(12, 8);
  const auto groups = [](Net& net) {
    std::vector<torch::optim::OptimizerParamGroup> all;
    all.emplace_back(net->second->parameters(), std::make_unique<torch::optim::AdamOptions>(0.003));
    all.emplace_back(net->first->parameters());
    return all;
  };
  Net plain = make_net();
  Net ours = make_net();
  torch::optim::Adam reference(groups(plain), torch::optim::AdamOptions(0.02));
  DistributedOptimizer optimizer(torch::optim::Adam(groups(ours), torch::optim::AdamOptions(0.02)),
                                 job(1, "allreduce"));
  torch::optim::StepLR reference_schedule(reference, 4, 0.5);
  torch::optim::StepLR schedule(optimizer, 4, 0.5);
  for (const Batch& batch : batches) {
    take_step(plain, reference, batch);
    take_step(ours, optimizer, batch);
    reference_schedule.step();
    schedule.step();
  }
  CHECK(same_bits(plain, ours));
  CHECK(optimizer.param_groups().size() == 2);
  CHECK(optimizer.param_groups()[0].options().get_lr() ==
        reference.param_groups()[0].options().get_lr());
  CHECK(optimizer.node().parameters().size() == 6 * 9 + 9 + 9 * 3 + 3);
}

TEST_CASE("a step rule of sotto's follows the learning rate of its group, and takes names") {
  const auto batches = make_batches(12, 8);
  Net plain = make_net();
  Net ours = make_net();
  torch::optim::SGD reference(plain->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  auto options = job(1, "allreduce");
  options.step_rule.learning_rate = 0.1;
  options.step_rule.momentum = 0.9;
  DistributedOptimizer optimizer(ours->named_parameters(), options);
  torch::optim::StepLR reference_schedule(reference, 4, 0.5);
  torch::optim::StepLR schedule(optimizer, 4, 0.5);
  for (const Batch& batch : batches) {
    take_step(plain, reference, batch);
    take_step(ours, optimizer, batch);
    reference_schedule.step();
    schedule.step();
  }
  CHECK(largest_difference(plain, ours) < 1e-6);
}

TEST_CASE("algorithms that are built on sotto's adam run on torch's models, by tensors' names") {
  std::vector<Net> nets = {make_net(), make_net()};
  const auto batches = make_batches(40, 8);
  auto options = job(2, "onebit-adam-gossip", "sign; *.bias=none");
  options.algorithm = "onebit-adam-gossip:freeze=8";
  options.step_rule.rule = "adam";
  options.step_rule.learning_rate = 0.01;
  const auto thrown = play(2, [&](int rank) {
    Net& net = nets[static_cast<std::size_t>(rank)];
    DistributedOptimizer optimizer(net->named_parameters(), at_rank(options, rank));
    for (const Batch& batch : batches) {
      take_step(net, optimizer, batch);
    }
    optimizer.finish_with_mean();
  });
  CHECK(thrown == std::vector<std::string>(2));
  CHECK(same_bits(nets[0], nets[1]));
  Net start = make_net();
  const auto loss = [&](Net& net) {
    return torch::mse_loss(net->forward(batches[39].x), batches[39].y).item<double>();
  };
  CHECK(loss(nets[0]) < loss(start));
}

TEST_CASE("parameters without a gradient are skipped as torch does, alone") {
  const auto batches = make_batches(10, 8);
  const auto make =
      maker<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1));
  Net plain = make_net();
  Net ours = make_net();
  const auto reference = make(plain->parameters());
  DistributedOptimizer optimizer(make(ours->parameters()), job(1, "dpsgd"));
  for (const Batch& batch : batches) {
    // As zero_grad(set_to_none) does in Python.
    for (const auto& parameter : ours->parameters()) {
      parameter.mutable_grad() = torch::Tensor();
    }
    take_step(ours, optimizer, batch);
    take_step(plain, *reference, batch);
  }
  CHECK(same_bits(plain, ours));
  CHECK(same_bits(ours->spare->weight, make_net()->spare->weight));
  CHECK_FALSE(ours->spare->weight.grad().defined());
}

TEST_CASE("a gradient that one of two nodes has counts half") {
  std::vector<Net> nets = {make_net(), make_net()};
  const auto input = torch::ones({1, 4});
  const auto options = job(2, "allreduce");
  const auto thrown = play(2, [&](int rank) {
    Net& net = nets[static_cast<std::size_t>(rank)];
    DistributedOptimizer optimizer(torch::optim::SGD(net->spare->parameters(), 1),
                                   at_rank(options, rank));
    optimizer.zero_grad();
    if (rank == 0) {
      net->spare->forward(input).sum().backward();
    }
    optimizer.step();
    optimizer.finish();
  });
  CHECK(thrown == std::vector<std::string>(2));
  CHECK(same_bits(nets[0], nets[1]));
  const auto moved = make_net()->spare->bias - nets[0]->spare->bias;
  CHECK(torch::allclose(moved, torch::full({2}, 0.5)));
}

TEST_CASE("half precision is trained through a float32 copy") {
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    auto parameter = torch::ones({3}, torch::TensorOptions(type).requires_grad(true));
    auto whole = torch::ones({2}, torch::requires_grad());
    DistributedOptimizer optimizer(torch::optim::SGD({whole, parameter}, 1e-4),
                                   job(1, "allreduce"));
    for (int step = 0; step < 200; ++step) {
      optimizer.zero_grad();
      parameter.mutable_grad() = torch::ones({3}, type);
      optimizer.step();
    }
    // A step in half precision would leave 1 as it is.
    const bool kept = parameter.scalar_type() == type;
    CHECK(kept);
    CHECK(parameter[0].item<float>() == doctest::Approx(0.98).epsilon(0.005));
    CHECK(optimizer.node().parameters()[2] == doctest::Approx(0.98).epsilon(1e-4));
    CHECK(optimizer.node().parameters()[0] == 1);
  }
}

TEST_CASE("a closure is evaluated once, and its loss comes back") {
  const auto batches = make_batches(5, 8);
  Net plain = make_net();
  Net ours = make_net();
  torch::optim::SGD reference(plain->parameters(), 0.1);
  DistributedOptimizer optimizer(torch::optim::SGD(ours->parameters(), 0.1), job(1, "dpsgd"));
  for (const Batch& batch : batches) {
    take_step(plain, reference, batch);
    int calls = 0;
    const auto loss = optimizer.step([&] {
      ++calls;
      optimizer.zero_grad();
      auto value = torch::mse_loss(ours->forward(batch.x), batch.y);
      value.backward();
      return value;
    });
    CHECK(calls == 1);
    CHECK(loss.item<double>() > 0);
  }
  CHECK(same_bits(plain, ours));
}

// Gradients that leave while the backward pass goes on.
#include "torch/nets.h"

#include <limits>

using namespace torch_test;

namespace {

constexpr std::int64_t kWidth = 70;  // three buckets of 4096 and more

/// A net whose second layer is used twice, and whose last one never is.
struct DeepImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    const auto hidden = torch::tanh(second->forward(torch::tanh(first->forward(x))));
    return third->forward(torch::tanh(second->forward(hidden)));
  }

  torch::nn::Linear first = register_module("first", torch::nn::Linear(6, kWidth));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(kWidth, kWidth));
  torch::nn::Linear third = register_module("third", torch::nn::Linear(kWidth, 3));
  torch::nn::Linear spare = register_module("spare", torch::nn::Linear(kWidth, kWidth));
};
TORCH_MODULE(Deep);

/// Not from several threads at a time: torch's generator is one for all.
Deep make_deep() {
  torch::manual_seed(3);
  return Deep();
}

std::vector<Deep> make_two() { return {make_deep(), make_deep()}; }

sotto::OptimizerOptions early_job(int nodes, const std::string& algorithm) {
  auto options = job(nodes, algorithm);
  options.buckets = 3;
  return options;
}

using Build = std::function<std::unique_ptr<DistributedOptimizer>(Deep&, sotto::OptimizerOptions)>;

Build around(const Maker& make) {
  return [make](Deep& net, const sotto::OptimizerOptions& options) {
    return std::make_unique<DistributedOptimizer>(make(net->parameters()), options);
  };
}

std::unique_ptr<DistributedOptimizer> with_own_adam(Deep& net, sotto::OptimizerOptions options) {
  options.step_rule.rule = "adam";
  options.step_rule.learning_rate = 0.01;
  return std::make_unique<DistributedOptimizer>(net->named_parameters(), options);
}

torch::Tensor loss_of(Deep& net, const Batch& batch) {
  return torch::mse_loss(net->forward(batch.x), batch.y);
}

/// The models of two nodes after some steps.
std::vector<std::vector<torch::Tensor>> trained(const std::string& algorithm, const Build& build,
                                                bool early) {
  const auto options = early_job(2, algorithm);
  std::vector<std::vector<torch::Tensor>> models(2);
  std::vector<Deep> nets = make_two();
  const std::vector<std::vector<Batch>> batches = {make_batches(8, 8, 1), make_batches(8, 8, 2)};
  const auto thrown = play(2, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const auto optimizer = build(nets[r], at_rank(options, rank));
    for (const Batch& batch : batches[r]) {
      optimizer->zero_grad();
      if (early && !optimizer->start_in_backward()) {
        throw std::runtime_error("it does not start in the backward pass");
      }
      loss_of(nets[r], batch).backward();
      optimizer->step();
    }
    optimizer->finish();
    models[r] = nets[r]->parameters();
  });
  CHECK(thrown == std::vector<std::string>(2));
  return models;
}

}  // namespace

TEST_CASE("gradients that leave during the backward pass give the same bits") {
  using namespace torch::optim;
  const std::vector<std::pair<const char*, Build>> builds = {
      {"sgd", around(maker<SGD>(SGDOptions(0.05).momentum(0.9).weight_decay(0.01)))},
      {"adamw", around(maker<AdamW>(AdamWOptions(0.01)))},
      {"rmsprop", around(maker<RMSprop>(RMSpropOptions(0.01)))},
      {"own adam", with_own_adam}};
  for (const char* algorithm : {"choco", "dcd", "deepsqueeze"}) {
    for (const auto& [name, build] : builds) {
      CAPTURE(algorithm);
      CAPTURE(name);
      const auto whole = trained(algorithm, build, false);
      const auto early = trained(algorithm, build, true);
      for (std::size_t rank = 0; rank < 2; ++rank) {
        REQUIRE(whole[rank].size() == early[rank].size());
        for (std::size_t i = 0; i < whole[rank].size(); ++i) {
          CHECK(same_bits(whole[rank][i], early[rank][i]));
        }
      }
    }
  }
}

TEST_CASE("a bucket is sent before the backward pass is over") {
  const auto options = early_job(2, "choco");
  auto nets = make_two();
  const Batch batch = make_batches(1, 8)[0];
  const auto thrown = play(2, [&](int rank) {
    Deep& net = nets[static_cast<std::size_t>(rank)];
    DistributedOptimizer optimizer(torch::optim::SGD(net->parameters(), 0.1),
                                   at_rank(options, rank));
    std::uint64_t seen = 0;
    net->first->weight.register_hook([&](const torch::Tensor& gradient) {
      seen = optimizer.node().standing().traffic[0].frames;
      return gradient;
    });
    for (std::uint64_t step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      if (!optimizer.start_in_backward()) {
        throw std::runtime_error("it does not start in the backward pass");
      }
      // Passes go backwards: the last bucket's layer has its gradient first, the first layer last.
      auto loss = loss_of(net, batch);
      loss = loss + net->spare->weight.square().sum() + net->spare->bias.square().sum();
      loss.backward();
      if (seen <= 3 * step) {
        throw std::runtime_error("nothing had been sent when the last gradient came");
      }
      optimizer.step();
      if (optimizer.node().round() != step + 1) {
        throw std::runtime_error("the step was not made");
      }
    }
    optimizer.finish();
  });
  CHECK(thrown == std::vector<std::string>(2));
}

TEST_CASE("where gradients are needed whole none leaves early") {
  auto nets = make_two();
  const auto starts = [&](const sotto::OptimizerOptions& options, const Build& build) {
    Deep& net = nets[static_cast<std::size_t>(options.rank)];
    return build(net, options)->start_in_backward();
  };
  const Build sgd = around(maker<torch::optim::SGD>(torch::optim::SGDOptions(0.1)));
  CHECK_FALSE(starts(early_job(1, "choco"), sgd));
  const auto two = [&](const std::string& algorithm, std::uint32_t buckets, double clip) {
    auto options = early_job(2, algorithm);
    options.buckets = buckets;
    options.step_rule.clip_norm = clip;
    std::vector<char> started(2, 1);
    nets = make_two();
    play(2, [&](int rank) {
      started[static_cast<std::size_t>(rank)] = starts(at_rank(options, rank), with_own_adam);
    });
    return started;
  };
  const double none = std::numeric_limits<double>::infinity();
  CHECK(two("choco", 3, none) == std::vector<char>{1, 1});
  CHECK(two("choco", 1, none) == std::vector<char>{0, 0});
  CHECK(two("allreduce", 1, none) == std::vector<char>{0, 0});
  CHECK(two("choco", 3, 1.0) == std::vector<char>{0, 0});
}

namespace {

/// What `work` throws at each of two nodes that have just begun a step whose gradient leaves early.
void with_two(const std::function<void(Deep&, DistributedOptimizer&, const Batch&)>& work) {
  const auto options = early_job(2, "choco");
  const Batch batch = make_batches(1, 8)[0];
  auto nets = make_two();
  const auto thrown = play(2, [&](int rank) {
    Deep& net = nets[static_cast<std::size_t>(rank)];
    DistributedOptimizer optimizer(torch::optim::SGD(net->parameters(), 0.1),
                                   at_rank(options, rank));
    optimizer.zero_grad();
    optimizer.start_in_backward();
    work(net, optimizer, batch);
  });
  CHECK(thrown == std::vector<std::string>(2));
}

void expect(const std::string& part, const std::function<void()>& work) {
  const std::string said = message_of(work);
  if (said.find(part) == std::string::npos) {
    throw std::runtime_error("said '" + said + "' and not '" + part + "'");
  }
}

torch::Tensor nan_of(const torch::nn::Linear& layer) {
  return (layer->bias * std::numeric_limits<float>::quiet_NaN()).sum();
}

void expect_nan(DistributedOptimizer& optimizer) {
  try {
    optimizer.step();
  } catch (const RunFault& fault) {
    if (fault.status().fault() == sotto::Fault::non_finite) {
      return;
    }
    throw;
  }
  throw std::runtime_error("a NaN was taken");
}

}  // namespace

TEST_CASE("early gradients that are added to or thrown away are an error") {
  with_two([](Deep& net, DistributedOptimizer& optimizer, const Batch& batch) {
    loss_of(net, batch).backward();
    expect("no way back", [&] { optimizer.zero_grad(); });
    expect("no way back", [&] { optimizer.start_in_backward(); });
    loss_of(net, batch).backward();
    expect("a second backward pass", [&] { optimizer.step(); });
    expect("was changed after it had been sent", [&] { optimizer.step(); });
  });
}

TEST_CASE("what would come too late for early gradients is an error") {
  with_two([](Deep& net, DistributedOptimizer& optimizer, const Batch& batch) {
    loss_of(net, batch).backward();
    const double rate = optimizer.param_groups()[0].options().get_lr();
    optimizer.param_groups()[0].options().set_lr(rate / 2);
    expect("the learning rate or another option was changed", [&] { optimizer.step(); });
    optimizer.param_groups()[0].options().set_lr(rate);
    auto& options = static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options());
    options.momentum(0.5);
    expect("or another option was changed", [&] { optimizer.step(); });
    options.momentum(0);
    optimizer.step();
    optimizer.zero_grad();
    optimizer.start_in_backward();
    loss_of(net, batch).backward();
    torch::nn::utils::clip_grad_norm_(net->parameters(), 1e-3);
    expect("clipped, or scaled?", [&] { optimizer.step(); });
  });
}

TEST_CASE("early gradients that are put in another order or change their signs are an error") {
  const std::vector<std::function<torch::Tensor(const torch::Tensor&)>> changes = {
      [](const torch::Tensor& gradient) { return gradient.flip(0); },
      [](const torch::Tensor& gradient) { return -gradient; }};
  for (const auto& change : changes) {
    with_two([&](Deep& net, DistributedOptimizer& optimizer, const Batch& batch) {
      loss_of(net, batch).backward();
      const torch::Tensor gradient = net->second->weight.grad().data();
      const torch::Tensor kept = gradient.clone();
      gradient.copy_(change(kept));
      expect("was changed after it had been sent", [&] { optimizer.step(); });
      gradient.copy_(kept);
      optimizer.step();
      optimizer.finish();
    });
  }
}

TEST_CASE("after a NaN in early gradients another one may be given in its place") {
  with_two([](Deep& net, DistributedOptimizer& optimizer, const Batch& batch) {
    (loss_of(net, batch) + nan_of(net->spare)).backward();
    expect_nan(optimizer);
    net->spare->bias.mutable_grad().zero_();
    optimizer.step();
    if (optimizer.node().round() != 1) {
      throw std::runtime_error("the step was not made");
    }
    optimizer.finish();
  });
}

TEST_CASE("a batch whose first early gradient is a NaN is skipped, and leaves no trace") {
  with_two([](Deep& net, DistributedOptimizer& optimizer, const Batch& batch) {
    auto loss = loss_of(net, batch);
    loss = loss * std::numeric_limits<float>::quiet_NaN();
    loss.backward();
    optimizer.zero_grad();  // and no step
    // The first of two passes, which start_in_backward has not been called for.
    loss_of(net, batch).backward();
    optimizer.start_in_backward();
    loss_of(net, batch).backward();
    optimizer.step();
    if (optimizer.node().round() != 1) {
      throw std::runtime_error("the step was not made");
    }
    optimizer.finish();
  });
}

// What is done to a model after the optimizer was made: until the nodes meet it is followed, later
// layers are frozen and unfrozen, and all else is refused.
#include <optional>

#include "torch/nets.h"

using namespace torch_test;

namespace {

torch::optim::AdamW adamw_of(const std::vector<torch::Tensor>& parameters) {
  return torch::optim::AdamW(parameters, torch::optim::AdamWOptions(0.01));
}

torch::optim::SGD heavy_sgd_of(const std::vector<torch::Tensor>& parameters) {
  return torch::optim::SGD(parameters,
                           torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1));
}

torch::optim::OptimizerParamGroup group_of(const std::vector<torch::Tensor>& parameters,
                                           double rate) {
  return {parameters, std::make_unique<torch::optim::AdamWOptions>(rate)};
}

void freeze(Net& net, bool frozen) {
  for (auto& parameter : net->first->parameters()) {
    parameter.set_requires_grad(!frozen);
    if (frozen) {
      parameter.mutable_grad() = torch::Tensor();  // as torch has it: what is there is stepped
    }
  }
}

void load_into(Net& net, const Net& from) {
  std::stringstream saved;
  torch::save(from, saved);
  torch::load(net, saved);
}

/// A change to a model whose optimizer is made.
struct ChangeOfModel {
  const char* name;
  std::function<void(Net&, torch::optim::Optimizer&)> make;
};

}  // namespace

TEST_CASE("until the nodes meet, what is done to the model counts as if it had been done before") {
  const Net other = make_net(77);  // made once: torch's generator is one for all threads
  const std::vector<ChangeOfModel> changes = {
      {"another model's values", [&](Net& net, auto&) { load_into(net, other); }},
      {"new values in place",
       [](Net& net, auto&) {
         const torch::NoGradGuard no_grad;
         net->second->weight.fill_(0.25);
       }},
      {"a layer frozen", [](Net& net, auto&) { net->first->weight.set_requires_grad(false); }},
      {"a layer unfrozen", [](Net& net, auto&) { net->second->bias.set_requires_grad(true); }},
      {"double precision", [](Net& net, auto&) { net->to(torch::kDouble); }},
      {"a group added",
       [](Net& net, torch::optim::Optimizer& optimizer) {
         optimizer.add_param_group(group_of(net->spare->parameters(), 0.5));
       }},
  };
  constexpr int kNodes = 3;
  for (const ChangeOfModel& change : changes) {
    CAPTURE(change.name);
    for (const char* algorithm : {"allreduce", "dcd"}) {
      std::vector<std::vector<Net>> models;
      for (const bool before : {true, false}) {
        std::vector<Net>& nets = models.emplace_back();
        std::vector<std::vector<Batch>> batches;
        for (std::uint64_t rank = 0; rank < kNodes; ++rank) {
          nets.push_back(make_net());
          nets.back()->second->bias.set_requires_grad(false);
          batches.push_back(make_batches(4, 8, 90 + rank));
        }
        const auto options = job(kNodes, algorithm);
        const auto thrown = play(kNodes, [&](int rank) {
          Net& net = nets[static_cast<std::size_t>(rank)];
          torch::optim::AdamW local({group_of(net->first->parameters(), 0.01),
                                     group_of(net->second->parameters(), 0.02)});
          if (before) {
            change.make(net, local);
          }
          DistributedOptimizer optimizer(std::move(local), at_rank(options, rank));
          if (!before) {
            change.make(net, optimizer);
          }
          for (const Batch& batch : batches[static_cast<std::size_t>(rank)]) {
            const auto type = net->first->weight.dtype();
            optimizer.zero_grad();
            torch::mse_loss(net->forward(batch.x.to(type)), batch.y.to(type)).backward();
            optimizer.step();
          }
          optimizer.finish();
        });
        CHECK(thrown == std::vector<std::string>(kNodes));
      }
      for (std::size_t rank = 0; rank < kNodes; ++rank) {
        CHECK(same_bits(models[0][rank], models[1][rank]));
      }
    }
  }
}

TEST_CASE("until the nodes meet, a write through data() reaches a float32 copy too") {
  const auto batches = make_batches(3, 8);
  std::vector<Net> nets;
  for (const bool before : {true, false}) {
    Net& net = nets.emplace_back(make_net());
    net->to(torch::kDouble);
    if (before) {
      net->first->weight.data().mul_(0.5);
    }
    DistributedOptimizer optimizer(heavy_sgd_of(net->parameters()), job(1, "dcd"));
    if (!before) {
      net->first->weight.data().mul_(0.5);
    }
    for (const Batch& batch : batches) {
      optimizer.zero_grad();
      torch::mse_loss(net->forward(batch.x.to(torch::kDouble)), batch.y.to(torch::kDouble))
          .backward();
      optimizer.step();
    }
  }
  CHECK(same_bits(nets[0], nets[1]));
}

TEST_CASE("nodes that have loaded other models since are told so") {
  std::vector<Net> nets = {make_net(), make_net()};
  const std::vector<Net> others = {make_net(7), make_net(8)};
  const auto options = job(2, "dcd");
  const auto thrown = play(2, [&](int rank) {
    Net& net = nets[static_cast<std::size_t>(rank)];
    DistributedOptimizer optimizer(adamw_of(net->parameters()), at_rank(options, rank));
    load_into(net, others[static_cast<std::size_t>(rank)]);
    optimizer.zero_grad();
  });
  CHECK(contains(thrown[0] + thrown[1], "initial parameters"));
}

TEST_CASE("a change that cannot be trained is refused, and may be taken back") {
  Net net = make_net();
  DistributedOptimizer optimizer(adamw_of(net->parameters()), job(1, "dpsgd"));
  net->to(torch::kComplexFloat);
  CHECK(contains(message_of([&] { optimizer.zero_grad(); }), "'ComplexFloat' is refused"));
  net->to(torch::kFloat);
  take_step(net, optimizer, make_batches(1, 8).front());
  CHECK(optimizer.node().round() == 1);
}

TEST_CASE("a node is where it was when the optimizer had to be made anew") {
  Net net = make_net();
  DistributedOptimizer optimizer(adamw_of(net->parameters()), job(1, "dpsgd"));
  const sotto::Optimizer& node = optimizer.node();
  load_into(net, make_net(3));
  take_step(net, optimizer, make_batches(1, 8).front());
  CHECK(&node == &optimizer.node());
  CHECK(node.round() == 1);
}

TEST_CASE("alone, layers that are frozen and unfrozen later get the bits that torch gives") {
  Net net = make_net();
  Net plain = make_net();
  DistributedOptimizer optimizer(heavy_sgd_of(net->parameters()), job(1, "dpsgd"));
  auto reference = heavy_sgd_of(plain->parameters());
  const auto batches = make_batches(12, 8);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (i % 4 == 2) {
      freeze(net, i % 8 == 2);
      freeze(plain, i % 8 == 2);
    }
    const auto before = net->first->weight.detach().clone();
    take_step(net, optimizer, batches[i]);
    take_step(plain, reference, batches[i]);
    CHECK(same_bits(net, plain));
    CHECK(same_bits(net->first->weight, before) == ((i >= 2 && i < 6) || i >= 10));
  }
}

TEST_CASE(
    "a layer that is frozen later stays where it is on all nodes, and comes back with its "
    "moments") {
  constexpr int kNodes = 3;
  std::vector<Net> nets;
  std::vector<std::vector<Batch>> batches;
  for (std::uint64_t rank = 0; rank < kNodes; ++rank) {
    nets.push_back(make_net());
    batches.push_back(make_batches(12, 8, 60 + rank));
  }
  // What one node does with all nodes' batches.
  Net plain = make_net();
  auto reference = heavy_sgd_of(plain->parameters());
  for (std::size_t i = 0; i < batches[0].size(); ++i) {
    if (i == 3 || i == 8) {
      freeze(plain, i == 3);
    }
    std::vector<torch::Tensor> x;
    std::vector<torch::Tensor> y;
    for (const auto& each : batches) {
      x.push_back(each[i].x);
      y.push_back(each[i].y);
    }
    for (const auto& parameter : plain->spare->parameters()) {
      parameter.mutable_grad() = torch::zeros_like(parameter);  // nodes take none for 0
    }
    take_step(plain, reference, {torch::cat(x), torch::cat(y)});
  }
  const auto options = job(kNodes, "allreduce");
  const auto thrown = play(kNodes, [&](int rank) {
    Net& net = nets[static_cast<std::size_t>(rank)];
    DistributedOptimizer optimizer(heavy_sgd_of(net->parameters()), at_rank(options, rank));
    for (std::size_t i = 0; i < batches[0].size(); ++i) {
      if (i == 3 || i == 8) {
        for (auto& parameter : net->first->parameters()) {
          parameter.set_requires_grad(i == 8);  // gradients that are left over do not count
        }
      }
      const auto before = net->first->weight.detach().clone();
      take_step(net, optimizer, batches[static_cast<std::size_t>(rank)][i]);
      if (same_bits(net->first->weight, before) != (i >= 3 && i < 8)) {
        throw std::runtime_error("the layer moves in step " + std::to_string(i));
      }
    }
    optimizer.finish();
  });
  CHECK(thrown == std::vector<std::string>(kNodes));
  CHECK(torch::allclose(nets[0]->first->weight, plain->first->weight, 1e-4, 1e-6));
  CHECK(torch::allclose(nets[2]->second->weight, plain->second->weight, 1e-4, 1e-6));
}

TEST_CASE("one node that freezes a layer by itself is named") {
  std::vector<Net> nets = {make_net(), make_net()};
  const auto options = job(2, "allreduce");
  const auto batches = make_batches(6, 8);
  const auto thrown = play(2, [&](int rank) {
    Net& net = nets[static_cast<std::size_t>(rank)];
    DistributedOptimizer optimizer(heavy_sgd_of(net->parameters()), at_rank(options, rank));
    for (std::size_t i = 0; i < batches.size(); ++i) {
      freeze(net, rank == 1 && i >= 2);
      take_step(net, optimizer, batches[i]);
    }
  });
  CHECK(contains(thrown[0], "node 1"));
  CHECK(contains(thrown[0], "settings"));
}

TEST_CASE("what was left out stays out, and a rule of sotto's leaves nothing out later") {
  Net net = make_net();
  freeze(net, true);
  const auto batches = make_batches(2, 8);
  DistributedOptimizer optimizer(heavy_sgd_of(net->parameters()), job(1, "dpsgd"));
  take_step(net, optimizer, batches[0]);
  freeze(net, false);
  const std::string message = message_of([&] { optimizer.zero_grad(); });
  CHECK_MESSAGE(contains(message, "parameter 0 of shape"), message);
  CHECK_MESSAGE(contains(message, "was frozen when the nodes met"), message);

  Net other = make_net();
  DistributedOptimizer own(other->named_parameters(), job(1, "dpsgd"));
  take_step(other, own, batches[0]);
  freeze(other, true);
  CHECK(contains(message_of([&] { own.zero_grad(); }), "cannot leave out a layer"));
}

TEST_CASE("what a plain optimizer has learnt is kept, handed over or loaded") {
  const auto batches = make_batches(9, 8);
  const std::vector<std::pair<const char*, Maker>> makers = {
      {"SGD", maker<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9))},
      {"Adam", maker<torch::optim::Adam>(torch::optim::AdamOptions(0.01).amsgrad(true))},
      {"AdamW", maker<torch::optim::AdamW>(torch::optim::AdamWOptions(0.01))},
      {"RMSprop", maker<torch::optim::RMSprop>(
                      torch::optim::RMSpropOptions(0.01).momentum(0.5).centered(true))},
      {"Adagrad", maker<torch::optim::Adagrad>(torch::optim::AdagradOptions(0.1))},
  };
  for (const auto& kind : makers) {
    INFO(kind.first);
    for (const bool loaded : {false, true}) {
      Net plain = make_net();
      plain->spare->weight.set_requires_grad(false);  // such belong to a group all the same
      auto reference = kind.second(plain->parameters());
      for (std::size_t i = 0; i < 5; ++i) {
        take_step(plain, *reference, batches[i]);
      }
      Net net = make_net(5);
      std::stringstream model;
      std::stringstream state;
      torch::save(plain, model);
      torch::save(*reference, state);
      torch::load(net, model);
      auto local = kind.second(net->parameters());
      if (!loaded) {
        torch::load(*local, state);
      }
      DistributedOptimizer optimizer(std::move(local), job(1, "dpsgd"));
      if (loaded) {
        torch::load(optimizer, state);
      }
      for (std::size_t i = 5; i < batches.size(); ++i) {
        take_step(plain, *reference, batches[i]);
        take_step(net, optimizer, batches[i]);
        CHECK(same_bits(net, plain));
      }
    }
  }
}

TEST_CASE("nodes start from equal moments, or say that they do not") {
  for (const bool equal : {true, false}) {
    const auto options = job(2, "allreduce");
    std::vector<Net> nets;
    std::vector<Made> locals;
    for (std::uint64_t rank = 0; rank < 2; ++rank) {
      nets.push_back(make_net());
      locals.push_back(std::make_unique<torch::optim::AdamW>(adamw_of(nets.back()->parameters())));
      take_step(nets.back(), *locals.back(), make_batches(1, 8, equal ? 1 : 1 + rank).front());
      load_into(nets.back(), make_net());
    }
    const Batch batch = make_batches(1, 8).front();
    const auto thrown = play(2, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      DistributedOptimizer optimizer(std::move(locals[r]), at_rank(options, rank));
      take_step(nets[r], optimizer, batch);
      optimizer.finish();
    });
    if (equal) {
      CHECK(thrown == std::vector<std::string>(2));
    } else {
      CHECK(contains(thrown[0] + thrown[1], "torch-optimizer-state"));
    }
  }
}

TEST_CASE("sparse gradients are taken where torch's optimizer takes them") {
  using Embedding = torch::nn::Embedding;
  const auto make = [](bool sparse) {
    torch::manual_seed(4);
    return Embedding(torch::nn::EmbeddingOptions(10, 3).sparse(sparse));
  };
  const auto train = [](Embedding& embedding, torch::optim::Optimizer& optimizer) {
    for (const std::int64_t i : {1, 4, 7, 4}) {
      optimizer.zero_grad();
      embedding->forward(torch::tensor({i, i + 1, i})).square().sum().backward();
      optimizer.step();
    }
  };
  const std::vector<std::pair<const char*, Maker>> makers = {
      {"SGD", maker<torch::optim::SGD>(torch::optim::SGDOptions(0.1))},
      {"SGD with momentum", maker<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9))},
      {"Adagrad", maker<torch::optim::Adagrad>(torch::optim::AdagradOptions(0.1))}};
  for (const auto& kind : makers) {
    INFO(kind.first);
    Embedding plain = make(true);
    Embedding ours = make(true);
    const auto reference = kind.second(plain->parameters());
    DistributedOptimizer optimizer(kind.second(ours->parameters()), job(1, "allreduce"));
    train(plain, *reference);
    train(ours, optimizer);
    CHECK(torch::allclose(plain->weight, ours->weight, 1e-5, 1e-6));
    CHECK(ours->weight.grad().is_sparse());

    std::vector<Embedding> all = {make(true), make(false)};  // it is each node's own affair
    const auto options = job(2, "dcd");
    const auto thrown = play(2, [&](int rank) {
      Embedding& embedding = all[static_cast<std::size_t>(rank)];
      DistributedOptimizer node(kind.second(embedding->parameters()), at_rank(options, rank));
      train(embedding, node);
      node.finish_with_mean();
    });
    CHECK(thrown == std::vector<std::string>(2));
    CHECK(same_bits(all[0]->weight, all[1]->weight));
  }
  Embedding embedding = make(true);
  DistributedOptimizer adam(torch::optim::Adam(embedding->parameters(), 0.1), job(1, "allreduce"));
  CHECK(contains(message_of([&] { train(embedding, adam); }), "is sparse"));
  DistributedOptimizer own(embedding->named_parameters(), job(1, "dpsgd"));
  const auto before = embedding->weight.detach().clone();
  train(embedding, own);
  CHECK_FALSE(same_bits(embedding->weight, before));
}

TEST_CASE("parameters keep the order of their elements in memory") {
  const auto make = [](bool channels_last) {
    torch::manual_seed(6);
    torch::nn::Conv2d conv(torch::nn::Conv2dOptions(3, 4, 3));
    if (channels_last) {
      const torch::NoGradGuard no_grad;
      conv->weight.set_data(conv->weight.contiguous(at::MemoryFormat::ChannelsLast));
    }
    return conv;
  };
  torch::manual_seed(8);
  std::vector<torch::Tensor> inputs;
  for (int step = 0; step < 6; ++step) {
    inputs.push_back(torch::randn({2, 3, 6, 6}));
  }
  const auto loss_of = [](torch::nn::Conv2d& conv, const torch::Tensor& x) {
    // Elementwise, so that the convolution's own rounding does not tell them apart.
    return conv->weight.mul(x.mean()).square().sum() + conv->forward(x).mean() * 0;
  };
  // One node with each order: models, messages and means are the same.
  std::vector<torch::nn::Conv2d> convs = {make(true), make(false), make(true)};
  const auto strides = convs[0]->weight.strides().vec();
  REQUIRE(strides != convs[1]->weight.strides().vec());
  const auto options = job(3, "choco");
  const auto thrown = play(3, [&](int rank) {
    auto& conv = convs[static_cast<std::size_t>(rank)];
    DistributedOptimizer optimizer(heavy_sgd_of(conv->parameters()), at_rank(options, rank));
    for (const torch::Tensor& x : inputs) {
      optimizer.zero_grad();
      loss_of(conv, x).backward();
      optimizer.step();
    }
    optimizer.finish_with_mean();
  });
  CHECK(thrown == std::vector<std::string>(3));
  CHECK(convs[0]->weight.strides().vec() == strides);
  CHECK(convs[0]->weight.is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(same_bits(convs[0]->weight, convs[1]->weight));
  CHECK(same_bits(convs[0]->weight, convs[2]->weight));
  CHECK_FALSE(same_bits(convs[0]->weight, make(false)->weight));
}

TEST_CASE("a copy's parameter that is replaced, and one that shares its own memory, are refused") {
  Net half = make_net();
  half->to(torch::kBFloat16);
  DistributedOptimizer optimizer(adamw_of(half->parameters()), job(1, "dpsgd"));
  const auto step = [&] {
    optimizer.zero_grad();
    half->forward(make_batches(1, 8).front().x.to(torch::kBFloat16)).square().mean().backward();
    optimizer.step();
  };
  step();
  load_into(half, half);
  CHECK(contains(message_of(step), "was replaced"));
  const auto shared = torch::ones({1, 3}).expand({4, 3}).detach().requires_grad_();
  CHECK(contains(
      message_of([&] { DistributedOptimizer(torch::optim::SGD({shared}, 0.1), job(1, "dpsgd")); }),
      "'expanded' is refused"));
}

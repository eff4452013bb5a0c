// What the adapter keeps, saves and refuses.
#include <optional>

#include "torch/nets.h"

using namespace torch_test;

namespace {

constexpr std::size_t kSaveAt = 6;
constexpr std::size_t kSteps = 14;

/// Trains from step `first` on; saves into `archive` before step kSaveAt, after zero_grad if
/// `begun`.
void train_node(Net& net, DistributedOptimizer& optimizer, torch::optim::StepLR& schedule,
                const std::vector<Batch>& batches, std::size_t first, bool begun,
                std::string* archive) {
  for (std::size_t step = first; step < kSteps; ++step) {
    if (begun) {
      optimizer.zero_grad();
    }
    if (step == kSaveAt && archive != nullptr) {
      std::ostringstream out;
      torch::save(optimizer, out);
      *archive = out.str();
    }
    take_step(net, optimizer, batches[step]);
    schedule.step();
  }
  optimizer.finish();
}

void check_resume(const sotto::OptimizerOptions& options, bool begun) {
  constexpr int kNodes = 4;
  std::vector<Net> whole;
  std::vector<Net> resumed;
  std::vector<std::vector<Batch>> batches;
  std::vector<std::string> archives(kNodes);
  for (std::uint64_t rank = 0; rank < kNodes; ++rank) {
    whole.push_back(make_net());
    resumed.push_back(make_net(77));
    batches.push_back(make_batches(kSteps, 8, 200 + rank));
  }
  const auto run = [&](std::vector<Net>& nets, bool load) {
    auto shared = options;
    shared.store = sotto::make_memory_store();
    const auto thrown = play(kNodes, [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      Net& net = nets[index];
      DistributedOptimizer optimizer(torch::optim::Adam(net->parameters(), 0.01),
                                     at_rank(shared, rank));
      torch::optim::StepLR schedule(optimizer, 5, 0.5);
      if (load) {
        std::istringstream in(archives[index]);
        torch::load(optimizer, in);
        for (std::size_t step = 0; step < kSaveAt; ++step) {
          schedule.step();
        }
        // The options came with the archive: the scheduler has changed them again.
        optimizer.param_groups()[0].options().set_lr(0.005);
      }
      train_node(net, optimizer, schedule, batches[index], load ? kSaveAt : 0, begun,
                 load ? nullptr : &archives[index]);
    });
    CHECK(thrown == std::vector<std::string>(kNodes));
  };
  run(whole, false);
  run(resumed, true);
  for (std::size_t rank = 0; rank < kNodes; ++rank) {
    CHECK(same_bits(whole[rank], resumed[rank]));
  }
}

DistributedOptimizer sgd_on(const std::vector<torch::Tensor>& parameters) {
  return DistributedOptimizer(torch::optim::SGD(parameters, 0.1), job(1, "allreduce"));
}

std::string refusal(const std::vector<torch::Tensor>& parameters) {
  return message_of([&] { sgd_on(parameters); });
}

}  // namespace

TEST_CASE("a run that was saved and loaded goes on with the same bits") {
  for (const char* algorithm : {"allreduce", "dpsgd", "dcd", "choco"}) {
    CAPTURE(algorithm);
    check_resume(job(4, algorithm), false);
    check_resume(job(4, algorithm), true);
  }
  auto local_steps = job(4, "dcd");
  local_steps.communication_interval = 4;
  check_resume(local_steps, false);
  check_resume(local_steps, true);
}

TEST_CASE("an archive brings the options of the torch optimizer and the model's parameters") {
  Net net = make_net();
  const auto batches = make_batches(4, 8);
  DistributedOptimizer optimizer(torch::optim::Adam(net->parameters(), 0.01), job(1, "allreduce"));
  for (const Batch& batch : batches) {
    take_step(net, optimizer, batch);
  }
  optimizer.param_groups()[0].options().set_lr(0.125);
  std::stringstream saved;
  torch::save(optimizer, saved);

  Net other = make_net(9);
  DistributedOptimizer fresh(torch::optim::Adam(other->parameters(), 0.01), job(1, "allreduce"));
  // As torch::load of a module does: the storage is another.
  other->first->weight.set_data(torch::zeros_like(other->first->weight));
  torch::load(fresh, saved);
  CHECK(same_bits(net, other));
  CHECK(fresh.param_groups()[0].options().get_lr() == 0.125);
  CHECK(fresh.node().round() == 4);
  take_step(net, optimizer, batches[0]);
  take_step(other, fresh, batches[0]);
  CHECK(same_bits(net, other));
  saved.clear();
  saved.seekg(0);
  CHECK(contains(message_of([&] { torch::load(fresh, saved); }), "before the first step"));
}

TEST_CASE("an archive brings the learning rate of sotto's step rule as a scheduler left it") {
  Net net = make_net();
  const auto batches = make_batches(1, 8);
  auto options = job(1, "dpsgd");
  options.step_rule.learning_rate = 0.1;
  DistributedOptimizer optimizer(net->named_parameters(), options);
  torch::optim::StepLR schedule(optimizer, 1, 0.5);
  take_step(net, optimizer, batches[0]);
  schedule.step();
  schedule.step();  // the first one only counts
  std::stringstream saved;
  torch::save(optimizer, saved);

  Net other = make_net();
  options.store = sotto::make_memory_store();
  DistributedOptimizer fresh(other->named_parameters(), options);
  torch::load(fresh, saved);
  CHECK(fresh.param_groups()[0].options().get_lr() == 0.05);
  take_step(net, optimizer, batches[0]);
  take_step(other, fresh, batches[0]);
  CHECK(same_bits(net, other));
}

TEST_CASE("a group that is added later is refused, around a torch optimizer and without one") {
  Net net = make_net();
  Net more = make_net();
  const auto add_to = [&](DistributedOptimizer& optimizer) {
    optimizer.zero_grad();
    optimizer.add_param_group(torch::optim::OptimizerParamGroup(more->parameters()));
    return message_of([&] { optimizer.zero_grad(); });
  };
  DistributedOptimizer own(net->named_parameters(), job(1, "dpsgd"));
  CHECK(contains(add_to(own), "parameter groups were changed"));
  DistributedOptimizer early(make_net()->named_parameters(), job(1, "dpsgd"));
  early.add_param_group(torch::optim::OptimizerParamGroup(more->parameters()));
  CHECK(contains(message_of([&] { early.zero_grad(); }), "one learning rate"));
  Net third = make_net();
  DistributedOptimizer wrapped(torch::optim::SGD(third->parameters(), 0.1), job(1, "dpsgd"));
  CHECK(contains(add_to(wrapped), "parameter groups were changed"));
}

TEST_CASE("nothing follows the end of a run") {
  Net net = make_net();
  const auto batches = make_batches(1, 8);
  DistributedOptimizer optimizer(torch::optim::SGD(net->parameters(), 0.1), job(1, "dpsgd"));
  take_step(net, optimizer, batches[0]);
  optimizer.finish();
  CHECK(contains(message_of([&] { optimizer.finish(); }), "the run is over"));
  CHECK(contains(message_of([&] { optimizer.zero_grad(); }), "the run is over"));
  CHECK(contains(message_of([&] { optimizer.step(); }), "the run is over"));
  std::stringstream saved;
  torch::save(optimizer, saved);  // the last state still is there
  CHECK(!saved.str().empty());
}

TEST_CASE("an archive of something else is refused") {
  Net net = make_net();
  const auto load = [&](const std::string& bytes) {
    DistributedOptimizer optimizer(torch::optim::Adam(net->parameters(), 0.01),
                                   job(1, "allreduce"));
    std::istringstream in(bytes);
    torch::load(optimizer, in);
  };
  std::ostringstream model;
  torch::save(net, model);
  CHECK_THROWS_AS(load(model.str()), RunFault);
  torch::optim::SGD plain(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  take_step(net, plain, make_batches(1, 8).front());
  std::ostringstream of_sgd;
  torch::save(plain, of_sgd);
  CHECK_THROWS_AS(load(of_sgd.str()), RunFault);
  std::ostringstream of_some;
  torch::save(torch::optim::Adam(net->first->parameters(), 0.01), of_some);
  CHECK_THROWS_AS(load(of_some.str()), RunFault);
  std::ostringstream sgd;
  torch::save(sgd_on(net->parameters()), sgd);
  CHECK_THROWS_AS(load(sgd.str()), RunFault);
  std::ostringstream short_one;
  torch::save(
      DistributedOptimizer(torch::optim::Adam(net->first->parameters(), 0.01), job(1, "allreduce")),
      short_one);
  CHECK_THROWS_AS(load(short_one.str()), RunFault);
}

TEST_CASE("a model is saved by itself, and outlives the optimizer") {
  Net net = make_net();
  const auto size = [&] {
    std::ostringstream out;
    torch::save(net, out);
    return out.str().size();
  };
  const auto before = size();
  const auto bias = net->second->bias.detach().clone();
  {
    auto optimizer = sgd_on(net->parameters());
    CHECK(size() == before);
    CHECK(same_bits(net->second->bias, bias));
  }
  CHECK(same_bits(net->second->bias, bias));
  CHECK(size() == before);
}

TEST_CASE("frozen layers stay out, must be equal, and stay frozen") {
  Net net = make_net();
  for (auto& parameter : net->first->parameters()) {
    parameter.set_requires_grad(false);
  }
  auto optimizer = sgd_on(net->parameters());
  const auto batches = make_batches(3, 8);
  take_step(net, optimizer, batches[0]);
  CHECK(same_bits(net->first->weight, make_net()->first->weight));
  CHECK_FALSE(same_bits(net->second->weight, make_net()->second->weight));
  CHECK(optimizer.node().parameters().size() == 9 * 3 + 3 + 4 * 2 + 2);
  net->first->weight.set_requires_grad(true);
  CHECK(contains(message_of([&] { take_step(net, optimizer, batches[1]); }), "was frozen"));

  std::vector<Net> nets = {make_net(), make_net()};
  for (Net& each : nets) {
    each->first->weight.set_requires_grad(false);
  }
  nets[1]->first->weight.data().add_(1);
  const auto options = job(2, "dpsgd");
  const auto thrown = play(2, [&](int rank) {
    Net& each = nets[static_cast<std::size_t>(rank)];
    DistributedOptimizer of_node(torch::optim::SGD(each->parameters(), 0.1),
                                 at_rank(options, rank));
    take_step(each, of_node, batches[0]);
  });
  CHECK(contains(thrown[1], "frozen-parameters"));
}

TEST_CASE("nodes whose torch optimizers differ do not start") {
  std::vector<Net> nets = {make_net(), make_net()};
  const auto options = job(2, "dpsgd");
  const auto thrown = play(2, [&](int rank) {
    Net& net = nets[static_cast<std::size_t>(rank)];
    DistributedOptimizer optimizer(
        torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.1 * rank)),
        at_rank(options, rank));
    optimizer.zero_grad();
  });
  CHECK(contains(thrown[1], "torch-optimizer's momentum of group 0 is 0.1 here and 0 there"));
  CHECK_FALSE(thrown[0].empty());
}

TEST_CASE("parameters that cannot be trained are refused with what would do") {
  Net net = make_net();
  const auto grad = torch::requires_grad();
  CHECK(contains(refusal({}), "parameters: 'none given' is refused"));
  CHECK(contains(refusal({torch::ones({2}, grad.dtype(torch::kComplexFloat))}),
                 "'ComplexFloat' is refused"));
  CHECK(contains(refusal({torch::ones({2}, grad.dtype(torch::kComplexFloat))}), "is refused"));
  CHECK(contains(refusal({torch::ones({2}, torch::kLong)}), "all frozen"));
  CHECK(contains(refusal({torch::ones({2}, grad.device(torch::kMeta))}), "'meta' is refused"));
  CHECK(contains(refusal({net->first->weight, net->first->weight}), "given twice"));
  const auto base = torch::ones({7});
  CHECK(contains(
      refusal({base.slice(0, 0, 5).requires_grad_(), base.slice(0, 2, 7).requires_grad_()}),
      "overlaps parameter 0"));
  CHECK(contains(
      refusal({base.slice(0, 2, 7).requires_grad_(), base.slice(0, 0, 3).requires_grad_()}),
      "overlaps parameter 0"));
  CHECK(
      contains(refusal({torch::ones({3}).to_sparse().requires_grad_()}), "'not dense' is refused"));
  CHECK(contains(message_of([&] {
                   DistributedOptimizer(torch::optim::LBFGS(net->parameters()), job(1, "dpsgd"));
                 }),
                 "'LBFGS' is refused"));
  CHECK(contains(message_of([&] {
                   DistributedOptimizer(torch::optim::Adam(net->parameters(), 0.1),
                                        job(1, "onebit-adam", "sign"));
                 }),
                 "built on adam"));
}

TEST_CASE("what happens to parameters behind the optimizer's back is found") {
  const auto batch = make_batches(1, 8).front();
  const auto after = [&](const std::function<void(Net&)>& change) {
    Net net = make_net();
    auto optimizer = sgd_on(net->parameters());
    take_step(net, optimizer, batch);
    change(net);
    return message_of([&] { optimizer.step(); });
  };
  CHECK(contains(after([](Net& net) {
                   net->first->weight.set_data(torch::ones({9, 6}));
                 }),
                 "storage of parameter 0 was replaced"));
  CHECK(contains(after([](Net& net) {
                   net->first->weight.set_data(torch::ones({2, 6}));
                 }),
                 "parameter 0 had the shape 9x6 when the optimizer was made and has 2x6 now"));
  CHECK(contains(after([](Net& net) { net->to(torch::kDouble); }), "was replaced"));
  CHECK(contains(after([](Net& net) {
                   std::stringstream saved;
                   torch::save(net, saved);
                   torch::load(net, saved);
                 }),
                 "load the model"));

  Net net = make_net();
  auto optimizer = sgd_on(net->first->parameters());
  optimizer.zero_grad();
  optimizer.add_param_group(torch::optim::OptimizerParamGroup(net->second->parameters()));
  CHECK(contains(message_of([&] { optimizer.step(); }), "parameter groups were changed"));
}

TEST_CASE("a gradient that is not finite changes nothing, and another one may follow") {
  Net net = make_net();
  Net plain = make_net();
  const auto batches = make_batches(3, 8);
  DistributedOptimizer optimizer(torch::optim::Adam(net->parameters(), 0.01), job(1, "allreduce"));
  torch::optim::Adam reference(plain->parameters(), 0.01);
  take_step(net, optimizer, batches[0]);
  take_step(plain, reference, batches[0]);
  std::optional<sotto::Fault> fault;
  try {
    const Batch bad = {torch::full({8, 6}, std::nan("")), batches[1].y};
    take_step(net, optimizer, bad);
  } catch (const RunFault& thrown) {
    fault = thrown.status().fault();
  }
  CHECK(fault == sotto::Fault::non_finite);
  CHECK(same_bits(net, plain));
  take_step(net, optimizer, batches[2]);
  take_step(plain, reference, batches[2]);
  CHECK(same_bits(net, plain));
}

TEST_CASE("a gradient through parameters that a step has changed is an error, as with torch") {
  Net net = make_net();
  auto optimizer = sgd_on(net->parameters());
  const auto batch = make_batches(1, 8).front();
  const auto loss = torch::mse_loss(net->forward(batch.x), batch.y);
  take_step(net, optimizer, batch);
  CHECK_THROWS_AS(loss.backward(), c10::Error);
}

TEST_CASE("nodes end with the mean of their models where they ask for it") {
  constexpr int kNodes = 4;
  std::vector<Net> nets;
  std::vector<std::vector<Batch>> batches;
  for (std::uint64_t rank = 0; rank < kNodes; ++rank) {
    nets.push_back(make_net());
    batches.push_back(make_batches(5, 8, 300 + rank));
  }
  std::vector<torch::Tensor> own(kNodes);
  const auto options = job(kNodes, "dcd");
  const auto thrown = play(kNodes, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    DistributedOptimizer optimizer(torch::optim::SGD(nets[index]->parameters(), 0.1),
                                   at_rank(options, rank));
    for (const Batch& batch : batches[index]) {
      take_step(nets[index], optimizer, batch);
    }
    own[index] = nets[index]->first->weight.detach().clone();
    optimizer.finish_with_mean();
  });
  CHECK(thrown == std::vector<std::string>(kNodes));
  CHECK_FALSE(same_bits(own[0], own[1]));
  for (const Net& net : nets) {
    CHECK(same_bits(net, nets.front()));
  }
  CHECK(
      torch::allclose(nets[0]->first->weight, (own[0] + own[1] + own[2] + own[3]) / 4, 1e-5, 1e-7));
}

TEST_CASE("a state brings back the rate of each group, as a scheduler left them") {
  const auto groups_of = [](Net& net) {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(net->first->parameters(), std::make_unique<torch::optim::SGDOptions>(0.1));
    groups.emplace_back(net->second->parameters(),
                        std::make_unique<torch::optim::SGDOptions>(0.01));
    return groups;
  };
  const auto set_rates = [](DistributedOptimizer& optimizer, double first, double second) {
    optimizer.param_groups()[0].options().set_lr(first);
    optimizer.param_groups()[1].options().set_lr(second);
  };
  const auto batches = make_batches(2, 8);
  for (const bool one_rate : {false, true}) {
    CAPTURE(one_rate);
    Net net = make_net();
    DistributedOptimizer optimizer(torch::optim::SGD(groups_of(net), torch::optim::SGDOptions(0.1)),
                                   job(1, "allreduce"));
    set_rates(optimizer, 0.05, one_rate ? 0.05 : 0.005);
    take_step(net, optimizer, batches[0]);
    set_rates(optimizer, 0.025, one_rate ? 0.025 : 0.0025);  // no step has been taken with these
    std::ostringstream out;
    torch::save(optimizer, out);
    Net other = make_net(9);
    DistributedOptimizer resumed(torch::optim::SGD(groups_of(other), torch::optim::SGDOptions(0.1)),
                                 job(1, "allreduce"));
    std::istringstream in(out.str());
    torch::load(resumed, in);
    CHECK(resumed.param_groups()[0].options().get_lr() == 0.025);
    CHECK(resumed.param_groups()[1].options().get_lr() == (one_rate ? 0.025 : 0.0025));
    take_step(net, optimizer, batches[1]);
    take_step(other, resumed, batches[1]);
    // What is in no group stays each model's own.
    CHECK(same_bits(net->first->weight, other->first->weight));
    CHECK(same_bits(net->second->weight, other->second->weight));
  }
}

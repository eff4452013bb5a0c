// All-reduce on nodes that come and go, of torch's models (sites/torch/elastic_optimizer.h).
// Threads of this process are the nodes.
#include "nets.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sotto/comm/transport.h>
#include <sotto/sites/torch/elastic_optimizer.h>

#include "support/free_port.h"
#include "support/skip.h"

using namespace torch_test;

namespace {

bool has_zmq() {
  const auto is_zmq = [](const auto& one) { return one.name == "zmq" && one.available; };
  return std::ranges::any_of(sotto::transports(), is_zmq);
}

sotto::ElasticOptions node_of_run(const std::string& name, const std::string& seed) {
  sotto::ElasticOptions options;
  options.name = name;
  options.roster = {.least = 2, .most = 3, .seeds = {seed}};
  options.wait_limit = std::chrono::minutes(2);  // a test that fails ends
  return options;
}

std::unique_ptr<torch::optim::Optimizer> adam_of(const Net& net) {
  return std::make_unique<torch::optim::Adam>(net->parameters(), torch::optim::AdamOptions(0.01));
}

std::vector<torch::Tensor> copy_of(const Net& net) {
  std::vector<torch::Tensor> copies;
  for (const auto& parameter : net->parameters()) {
    copies.push_back(parameter.detach().clone());
  }
  return copies;
}

}  // namespace

TEST_CASE("two nodes step as one does with the mean of their gradients, and are equal by bits") {
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  constexpr int kSteps = 8;
  const auto batches = make_batches(2 * kSteps, 4);
  Net plain = make_net();
  auto reference = adam_of(plain);
  for (int step = 0; step < kSteps; ++step) {
    plain->zero_grad();
    torch::Tensor loss = torch::zeros({});
    for (int node = 0; node < 2; ++node) {
      const Batch& batch = batches[static_cast<std::size_t>(2 * step + node)];
      loss = loss + torch::mse_loss(plain->forward(batch.x), batch.y) / 2;
    }
    loss.backward();
    reference->step();
  }
  const std::string seed = "127.0.0.1:" + std::to_string(sotto::test::free_port());
  std::vector<Net> nets = {make_net(), make_net(7)};  // b takes a's model over
  const auto thrown = play(2, [&](int number) {
    Net& net = nets[static_cast<std::size_t>(number)];
    sotto::ElasticOptions options = node_of_run(number == 0 ? "a" : "b", seed);
    options.listen = number == 0 ? seed : "127.0.0.1:0";
    options.rounds = kSteps;
    sotto::torch::ElasticOptimizer optimizer(adam_of(net), options);
    optimizer.connect();
    while (!optimizer.node().over()) {
      const auto step = optimizer.node().round();
      const Batch& batch = batches[2 * step + static_cast<std::size_t>(number)];
      optimizer.zero_grad();
      torch::mse_loss(net->forward(batch.x), batch.y).backward();
      optimizer.step();
    }
    optimizer.finish();
  });
  CHECK(thrown == std::vector<std::string>{"", ""});
  CHECK(same_bits(nets[0], nets[1]));
  CHECK(largest_difference(nets[0], plain) < 1e-5);
}

TEST_CASE("gradients that are sent in the backward pass make the steps of whole ones") {
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  constexpr int kSteps = 8;
  const auto batches = make_batches(2 * kSteps, 4);
  const auto trained = [&](bool in_backward) {
    const std::string seed = "127.0.0.1:" + std::to_string(sotto::test::free_port());
    std::vector<Net> nets = {make_net(), make_net()};
    const auto thrown = play(2, [&](int number) {
      Net& net = nets[static_cast<std::size_t>(number)];
      sotto::ElasticOptions options = node_of_run(number == 0 ? "a" : "b", seed);
      options.listen = number == 0 ? seed : "127.0.0.1:0";
      options.rounds = kSteps;
      sotto::torch::ElasticOptimizer optimizer(adam_of(net), options);
      optimizer.connect();
      while (!optimizer.node().over()) {
        const auto step = optimizer.node().round();
        const Batch& batch = batches[2 * step + static_cast<std::size_t>(number)];
        optimizer.zero_grad();
        if (in_backward) {
          optimizer.start_in_backward();
        }
        torch::mse_loss(net->forward(batch.x), batch.y).backward();
        optimizer.step();
      }
      optimizer.finish();
    });
    CHECK(thrown == std::vector<std::string>{"", ""});
    CHECK(same_bits(nets[0], nets[1]));
    return nets[0];
  };
  CHECK(same_bits(trained(true), trained(false)));
}

TEST_CASE("gradients that have been sent in the backward pass are not taken back") {
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto batches = make_batches(2, 4);
  Net net = make_net();
  sotto::ElasticOptions options =
      node_of_run("a", "127.0.0.1:" + std::to_string(sotto::test::free_port()));
  options.roster.least = 1;
  options.found_after = std::chrono::milliseconds(1);
  sotto::torch::ElasticOptimizer optimizer(adam_of(net), options);
  optimizer.connect();
  const auto backward = [&](const Batch& batch) {
    torch::mse_loss(net->forward(batch.x), batch.y).backward();
  };
  optimizer.start_in_backward();
  backward(batches[0]);
  CHECK_THROWS_AS(optimizer.zero_grad(), sotto::Error);
  net->parameters().front().mutable_grad().mul_(2);
  CHECK_THROWS_AS(optimizer.step(), sotto::Error);
  net->parameters().front().mutable_grad().div_(2);
  CHECK(optimizer.step().round == 1);
  optimizer.zero_grad();
  backward(batches[1]);  // whole again
  CHECK(optimizer.step().round == 2);
  optimizer.finish();
}

TEST_CASE("a node that is told to stop while it waits leaves its loop, and in good order") {
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto batches = make_batches(16, 4);
  const std::string seed = "127.0.0.1:" + std::to_string(sotto::test::free_port());
  std::atomic<bool> told{false};
  std::array<sotto::Round, 2> rounds{};
  const auto thrown = play(2, [&](int number) {
    Net net = make_net();
    sotto::ElasticOptions options = node_of_run(number == 0 ? "a" : "b", seed);
    options.listen = number == 0 ? seed : "127.0.0.1:0";
    options.rounds = number == 0 ? 6 : 0;  // then a leaves, and b waits for another node
    options.stop = number == 0 ? nullptr : &told;
    sotto::torch::ElasticOptimizer optimizer(
        adam_of(net), options, sotto::torch::NamedParameters(),
        [&told](const sotto::SiteEvent& event) {
          if (event.kind == sotto::SiteEvent::Kind::run_waits) {
            told = true;
          }
        });
    optimizer.connect();
    while (!optimizer.node().over()) {
      optimizer.zero_grad();
      const Batch& batch = batches[optimizer.node().round() % batches.size()];
      torch::mse_loss(net->forward(batch.x), batch.y).backward();
      optimizer.step();
    }
    optimizer.finish();
    rounds[static_cast<std::size_t>(number)] = optimizer.node().round();
  });
  CHECK(thrown == std::vector<std::string>{"", ""});
  CHECK(told);
  CHECK(rounds[0] >= 6);
  CHECK(rounds[1] >= 6);
}

TEST_CASE("nodes whose schedules differ end before the step in which they do") {
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto batches = make_batches(16, 4);
  const std::string seed = "127.0.0.1:" + std::to_string(sotto::test::free_port());
  std::array<sotto::Round, 2> rounds{};
  const auto thrown = play(2, [&](int number) {
    Net net = make_net();
    sotto::ElasticOptions options = node_of_run(number == 0 ? "a" : "b", seed);
    options.listen = number == 0 ? seed : "127.0.0.1:0";
    options.rounds = 6;
    sotto::torch::ElasticOptimizer optimizer(adam_of(net), options);
    optimizer.set_schedule([number](sotto::Round step, auto& groups) {
      groups[0].options().set_lr(number == 1 && step == 3 ? 0.02 : 0.01);
    });
    optimizer.connect();
    CHECK_THROWS_AS(optimizer.set_schedule({}), sotto::Error);
    try {
      while (!optimizer.node().over()) {
        rounds[static_cast<std::size_t>(number)] = optimizer.node().round();
        optimizer.zero_grad();
        const Batch& batch = batches[optimizer.node().round() % batches.size()];
        torch::mse_loss(net->forward(batch.x), batch.y).backward();
        optimizer.step();
      }
    } catch (const RunFault& fault) {
      CHECK(fault.status().fault() == sotto::Fault::unexpected);
    }
  });
  CHECK(thrown == std::vector<std::string>{"", ""});
  CHECK(rounds == std::array<sotto::Round, 2>{3, 3});
}

TEST_CASE("a newcomer takes over the model and the memory of a torch optimizer") {
  if (!has_zmq()) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const auto batches = make_batches(64, 4);
  const std::string seed = "127.0.0.1:" + std::to_string(sotto::test::free_port());
  std::atomic<bool> begun{false};  // the run has made some steps
  std::atomic<bool> done{false};   // the newcomer has made some
  std::vector<std::map<sotto::Round, std::vector<torch::Tensor>>> models(3);
  const auto thrown = play(3, [&](int number) {
    if (number == 2) {
      begun.wait(false);
    }
    Net net = make_net(static_cast<std::uint64_t>(number));
    sotto::ElasticOptions options =
        node_of_run(std::string(1, static_cast<char>('a' + number)), seed);
    options.listen = number == 0 ? seed : "127.0.0.1:0";
    options.stop = &done;
    sotto::torch::ElasticOptimizer optimizer(adam_of(net), options);
    optimizer.set_schedule([](sotto::Round step, auto& groups) {
      groups[0].options().set_lr(0.01 / static_cast<double>(1 + step));
    });
    optimizer.connect();
    auto& own = models[static_cast<std::size_t>(number)];
    try {
      while (!done) {
        const auto step = optimizer.node().round();
        own.emplace(step, copy_of(net));
        const Batch& batch = batches[(3 * step + static_cast<std::size_t>(number)) % 64];
        optimizer.zero_grad();
        torch::mse_loss(net->forward(batch.x), batch.y).backward();
        optimizer.step();
        if (number == 0 && step == 5) {
          begun = true;
          begun.notify_all();
        }
        done = done || (number == 2 && own.size() > 5);
      }
    } catch (const RunFault&) {
      if (!done) {
        throw;
      }
    }
    begun = true;  // whatever has failed, nobody waits for ever
    begun.notify_all();
  });
  CHECK(thrown == std::vector<std::string>{"", "", ""});
  REQUIRE(models[2].size() > 5);
  CHECK(models[2].begin()->first > 5);
  int compared = 0;
  for (const auto& [round, model] : models[2]) {
    for (int other = 0; other < 2; ++other) {
      const auto found = models[static_cast<std::size_t>(other)].find(round);
      if (found != models[static_cast<std::size_t>(other)].end()) {
        for (std::size_t k = 0; k < model.size(); ++k) {
          CHECK(same_bits(model[k], found->second[k]));
        }
        ++compared;
      }
    }
  }
  CHECK(compared > 5);
}

// The mean of all nodes' models while a run goes on, and what is found of it.
#include <cmath>
#include <new>
#include <stdexcept>
#include <string>

#include "torch/nets.h"

#include <sotto/trainers/result.h>

using namespace torch_test;

TEST_CASE(
    "the mean of all models is there for a while, and the run goes on as if it had not been") {
  constexpr int kNodes = 4;
  const auto trained = [&](bool look) {
    std::vector<Net> nets;
    for (int rank = 0; rank < kNodes; ++rank) {
      nets.push_back(make_net());
    }
    const auto options = job(kNodes, "dcd");
    std::vector<torch::Tensor> means(kNodes);
    std::vector<double> distances(kNodes);
    std::vector<std::vector<Batch>> batches;
    for (std::uint64_t rank = 0; rank < kNodes; ++rank) {
      batches.push_back(make_batches(6, 8, 300 + rank));
    }
    const auto thrown = play(kNodes, [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      Net& net = nets[index];
      DistributedOptimizer optimizer(torch::optim::SGD(net->parameters(), 0.1),
                                     at_rank(options, rank));
      for (const Batch& batch : batches[index]) {
        take_step(net, optimizer, batch);
        if (look) {
          const auto own = net->first->weight.detach().clone();
          distances[index] =
              optimizer.with_mean([&] { means[index] = net->first->weight.detach().clone(); });
          CHECK(same_bits(own, net->first->weight));
          CHECK_THROWS_AS(optimizer.with_mean([] { throw std::bad_alloc(); }), std::bad_alloc);
          CHECK(same_bits(own, net->first->weight));
        }
      }
      optimizer.finish();
    });
    CHECK(thrown == std::vector<std::string>(kNodes));
    if (look) {
      CHECK(distances[0] > 0);
      CHECK(distances == std::vector<double>(kNodes, distances[0]));
      CHECK(same_bits(means[0], means[3]));
      torch::Tensor mean = torch::zeros_like(means[0]);
      for (const Net& net : nets) {
        mean += net->first->weight.detach() / kNodes;
      }
      CHECK(torch::allclose(means[0], mean, 1e-5, 1e-7));
    }
    return nets;
  };
  const auto plain = trained(false);
  const auto looked = trained(true);
  for (std::size_t rank = 0; rank < kNodes; ++rank) {
    CHECK(same_bits(plain[rank], looked[rank]));
  }
}

namespace {

torch::Tensor loss_of(Net& net, const Batch& batch) {
  return torch::mse_loss(net->forward(batch.x), batch.y);
}

class Losses final : public sotto::Observer {
 public:
  void evaluated(const sotto::RunEvaluation& evaluation) override {
    if (!std::isnan(evaluation.point.loss)) {
      points.push_back(evaluation.point);
    }
  }
  std::vector<sotto::HistoryPoint> points;
};

}  // namespace

TEST_CASE(
    "what is found of the mean goes to who watches, with its distance from the nodes' models") {
  Losses losses;
  auto options = job(2, "dcd");
  options.observer = &losses;
  std::vector<double> found(2);
  std::vector<Net> nets = {make_net(), make_net()};
  const Batch test = make_batches(1, 8, 9)[0];
  const std::vector<std::vector<Batch>> batches = {make_batches(3, 8, 300),
                                                   make_batches(3, 8, 301)};
  const auto thrown = play(2, [&](int rank) {
    Net& net = nets[static_cast<std::size_t>(rank)];
    DistributedOptimizer optimizer(torch::optim::SGD(net->parameters(), 0.1),
                                   at_rank(options, rank));
    for (const Batch& batch : batches[static_cast<std::size_t>(rank)]) {
      take_step(net, optimizer, batch);
    }
    double& loss = found[static_cast<std::size_t>(rank)];
    optimizer.with_mean([&] { loss = loss_of(net, test).item<double>(); });
    optimizer.evaluated(loss);
    CHECK(loss_of(net, test).item<double>() != loss);
    optimizer.zero_grad();
    CHECK_THROWS_AS(optimizer.with_mean([] {}), sotto::Error);
    torch::mse_loss(net->forward(test.x), test.y).backward();
    optimizer.step();
    optimizer.finish();
  });
  CHECK(thrown == std::vector<std::string>(2));
  CHECK(found[0] == found[1]);
  REQUIRE(losses.points.size() == 1);
  CHECK(losses.points[0].loss == found[0]);
  CHECK(losses.points[0].consensus_distance > 0);
  CHECK(losses.points[0].round == 3);
}

TEST_CASE("the mean that a run ends with may have been looked at after the same step") {
  std::vector<Net> nets = {make_net(), make_net()};
  const std::vector<std::vector<Batch>> batches = {make_batches(2, 8, 300),
                                                   make_batches(2, 8, 301)};
  const auto options = job(2, "dcd");
  const auto thrown = play(2, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    DistributedOptimizer optimizer(torch::optim::SGD(nets[index]->parameters(), 0.1),
                                   at_rank(options, rank));
    for (const Batch& batch : batches[index]) {
      take_step(nets[index], optimizer, batch);
    }
    torch::Tensor mean;
    optimizer.with_mean([&] { mean = nets[index]->first->weight.detach().clone(); });
    CHECK_FALSE(same_bits(mean, nets[index]->first->weight));
    optimizer.finish_with_mean();
    CHECK(same_bits(mean, nets[index]->first->weight));
  });
  CHECK(thrown == std::vector<std::string>(2));
}

TEST_CASE("all nodes hear why one gave up, and that an exception ended one that did not say") {
  for (const bool says : {false, true}) {
    CAPTURE(says);
    const auto options = job(3, "dcd");
    std::vector<Net> nets = {make_net(), make_net(), make_net()};
    const Batch batch = make_batches(1, 8, 9)[0];
    const auto thrown = play(3, [&](int rank) {
      Net& net = nets[static_cast<std::size_t>(rank)];
      DistributedOptimizer optimizer(torch::optim::SGD(net->parameters(), 0.1),
                                     at_rank(options, rank));
      for (int step = 0; step < 100; ++step) {
        if (rank == 1 && step == 5) {
          if (says) {
            optimizer.give_up("the disk is full");
          }
          throw std::runtime_error("mine");
        }
        take_step(net, optimizer, batch);
      }
    });
    CHECK(thrown[1] == "mine");
    const std::string words =
        says ? "node 1: the disk is full" : "node 1: an exception ended the program";
    CHECK(thrown[0] == words);
    CHECK(thrown[2] == words);
  }
}

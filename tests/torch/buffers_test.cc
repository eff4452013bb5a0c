// Buffers: running statistics go with the model that is averaged, evaluated and saved.
#include <sstream>
#include <string>
#include <vector>

#include "torch/nets.h"

using namespace torch_test;

namespace {

struct NormedImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    return second->forward(torch::relu(norm->forward(first->forward(x))));
  }

  torch::nn::Linear first = register_module("first", torch::nn::Linear(6, 9));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(9));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(9, 3));
};
TORCH_MODULE(Normed);

Normed make_normed() {
  torch::manual_seed(4);
  return Normed();
}

constexpr int kNormedNodes = 3;

DistributedOptimizer make_normed_optimizer(Normed& net, const sotto::OptimizerOptions& options,
                                           int rank) {
  return {torch::optim::SGD(net->parameters(), 0.1), at_rank(options, rank), *net};
}

void train_normed(Normed& net, DistributedOptimizer& optimizer, const std::vector<Batch>& batches) {
  for (const Batch& batch : batches) {
    optimizer.zero_grad();
    torch::mse_loss(net->forward(batch.x), batch.y).backward();
    optimizer.step();
  }
}

torch::Tensor mean_of_all(const std::vector<torch::Tensor>& all) {
  return torch::stack(all).mean(0);
}

}  // namespace

TEST_CASE("buffers start as node 0's, and the mean of all is there with the model's") {
  const auto options = job(kNormedNodes, "dcd");
  std::vector<Normed> nets;
  std::vector<std::vector<Batch>> batches;
  for (std::uint64_t rank = 0; rank < kNormedNodes; ++rank) {
    nets.push_back(make_normed());
    nets.back()->norm->running_mean.fill_(static_cast<double>(rank));
    batches.push_back(make_batches(5, 8, 70 + rank));
  }
  std::vector<torch::Tensor> before(kNormedNodes), shown(kNormedNodes), started(kNormedNodes),
      last(kNormedNodes);
  const auto thrown = play(kNormedNodes, [&](int rank) {
    const auto own = static_cast<std::size_t>(rank);
    Normed& net = nets[own];
    auto optimizer = make_normed_optimizer(net, options, rank);
    optimizer.zero_grad();
    started[own] = net->norm->running_mean.clone();
    train_normed(net, optimizer, batches[own]);
    before[own] = net->norm->running_var.clone();
    optimizer.with_mean([&] { shown[own] = net->norm->running_var.clone(); });
    CHECK(same_bits(before[own], net->norm->running_var));
    last[own] = net->norm->running_mean.clone();
    optimizer.finish_with_mean();
    CHECK(net->norm->num_batches_tracked.item<std::int64_t>() == 5);
  });
  CHECK(thrown == std::vector<std::string>(kNormedNodes));
  for (std::size_t rank = 0; rank < kNormedNodes; ++rank) {
    CHECK(same_bits(started[rank], torch::zeros({9})));
    CHECK(same_bits(shown[rank], shown[0]));
    CHECK(torch::allclose(shown[rank], mean_of_all(before), 1e-6, 1e-8));
    CHECK(same_bits(nets[rank]->norm->running_mean, nets[0]->norm->running_mean));
    CHECK(torch::allclose(nets[rank]->norm->running_mean, mean_of_all(last), 1e-6, 1e-8));
  }
}

TEST_CASE("buffers are part of what is saved: a resumed run ends as an uninterrupted one") {
  const auto trained = [&](bool interrupt) {
    std::vector<Normed> nets(kNormedNodes, nullptr);
    std::vector<std::string> archives(kNormedNodes);
    std::vector<std::vector<Batch>> batches;  // torch's seed is one for all threads
    for (std::uint64_t rank = 0; rank < kNormedNodes; ++rank) {
      batches.push_back(make_batches(6, 8, 900 + rank));
    }
    const auto part = [&](int first, int last, bool load, bool save) {
      const auto options = job(kNormedNodes, "choco");
      for (Normed& net : nets) {
        net = make_normed();
      }
      const auto thrown = play(kNormedNodes, [&](int rank) {
        const auto own = static_cast<std::size_t>(rank);
        auto optimizer = make_normed_optimizer(nets[own], options, rank);
        if (load) {
          std::istringstream in(archives[own]);
          torch::load(optimizer, in);
        }
        const auto& all = batches[own];
        train_normed(nets[own], optimizer, {all.begin() + first, all.begin() + last});
        if (save) {
          std::ostringstream out;
          torch::save(optimizer, out);
          archives[own] = out.str();
        }
        optimizer.finish();
      });
      CHECK(thrown == std::vector<std::string>(kNormedNodes));
    };
    if (interrupt) {
      part(0, 2, false, true);
      part(2, 6, true, false);
    } else {
      part(0, 6, false, false);
    }
    return nets;
  };
  const auto whole = trained(false);
  const auto resumed = trained(true);
  for (std::size_t rank = 0; rank < kNormedNodes; ++rank) {
    CHECK(same_bits(whole[rank]->first->weight, resumed[rank]->first->weight));
    for (std::size_t k = 0; k < whole[rank]->buffers().size(); ++k) {
      CHECK(same_bits(whole[rank]->buffers()[k], resumed[rank]->buffers()[k]));
    }
  }
}

TEST_CASE("buffers are carried once, before steps, and models with other ones are told apart") {
  Normed net = make_normed();
  const auto options = at_rank(job(1, "allreduce"), 0);
  DistributedOptimizer optimizer(torch::optim::SGD(net->parameters(), 0.1), options, *net);
  CHECK_THROWS_AS(optimizer.carry_buffers(net->named_buffers()), sotto::Error);
  const auto two = job(2, "dcd");
  std::vector<Normed> pair = {make_normed(), make_normed()};
  const auto thrown = play(2, [&](int rank) {
    Normed& own = pair[static_cast<std::size_t>(rank)];
    DistributedOptimizer apart(torch::optim::SGD(own->parameters(), 0.1), at_rank(two, rank));
    if (rank == 1) {
      apart.carry_buffers(own->named_buffers());
    }
    apart.zero_grad();
  });
  for (const std::string& text : thrown) {
    CHECK(text.find("carried-values") != std::string::npos);
  }
}

TEST_CASE("a node without any data gives its buffers to the others, and takes part in their mean") {
  auto options = job(kNormedNodes, "allreduce");
  options.join = sotto::Join::zeros;
  std::vector<Normed> nets;
  std::vector<std::vector<Batch>> batches;
  for (std::uint64_t rank = 0; rank < kNormedNodes; ++rank) {
    nets.push_back(make_normed());
    nets.back()->norm->running_mean.fill_(static_cast<double>(1 + rank));
    batches.push_back(make_batches(rank == 0 ? 0 : 3, 8, 80 + rank));
  }
  // What a node's statistics come to that starts from node 0's.
  std::vector<torch::Tensor> started(kNormedNodes);
  const auto thrown = play(kNormedNodes, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    auto optimizer = make_normed_optimizer(nets[r], options, rank);
    if (rank != 0) {
      optimizer.zero_grad();
    }
    started[r] = nets[r]->norm->running_mean.clone();
    train_normed(nets[r], optimizer, batches[r]);
    optimizer.finish_with_mean();
  });
  CHECK(thrown == std::vector<std::string>(kNormedNodes));
  for (const torch::Tensor& start : started) {
    CHECK(torch::equal(start, torch::ones_like(start)));
  }
  for (const Normed& net : nets) {
    CHECK(torch::equal(net->norm->running_mean, nets[0]->norm->running_mean));
  }
}

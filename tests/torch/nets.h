// Small models, data and jobs for the tests of the libtorch adapter. Include it before doctest:
// torch brings a macro CHECK of its own.
#pragma once

#include <torch/torch.h>

#ifdef CHECK
#undef CHECK
#endif

#include <cstring>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/comm/stores.h>
#include <sotto/trainers/torch/distributed_optimizer.h>

namespace torch_test {

using sotto::torch::DistributedOptimizer;
using sotto::torch::RunFault;

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    return second->forward(torch::tanh(first->forward(x)));
  }

  torch::nn::Linear first = register_module("first", torch::nn::Linear(6, 9));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(9, 3));
  torch::nn::Linear spare = register_module("spare", torch::nn::Linear(4, 2));  // never used
};
TORCH_MODULE(Net);

inline Net make_net(std::uint64_t seed = 1) {
  torch::manual_seed(seed);
  return Net();
}

struct Batch {
  torch::Tensor x, y;
};

inline std::vector<Batch> make_batches(int count, std::int64_t rows, std::uint64_t seed = 5) {
  torch::manual_seed(seed);
  std::vector<Batch> batches;
  for (int i = 0; i < count; ++i) {
    batches.push_back({torch::randn({rows, 6}), torch::randn({rows, 3})});
  }
  return batches;
}

template <typename Optimizer>
void take_step(Net& net, Optimizer& optimizer, const Batch& batch) {
  optimizer.zero_grad();
  torch::mse_loss(net->forward(batch.x), batch.y).backward();
  optimizer.step();
}

inline bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  const auto left = a.detach().contiguous();
  const auto right = b.detach().contiguous();
  return left.nbytes() == right.nbytes() && left.scalar_type() == right.scalar_type() &&
         std::memcmp(left.data_ptr(), right.data_ptr(), left.nbytes()) == 0;
}

inline bool same_bits(const Net& a, const Net& b) {
  const auto left = a->parameters();
  const auto right = b->parameters();
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!same_bits(left[i], right[i])) {
      return false;
    }
  }
  return left.size() == right.size();
}

inline double largest_difference(const Net& a, const Net& b) {
  double most = 0;
  const auto left = a->parameters();
  const auto right = b->parameters();
  for (std::size_t i = 0; i < left.size(); ++i) {
    most = std::max(most, (left[i] - right[i]).abs().max().item<double>());
  }
  return most;
}

inline sotto::OptimizerOptions job(int nodes, const std::string& algorithm,
                                   const std::string& compressor = {}) {
  sotto::OptimizerOptions options;
  options.algorithm = algorithm;
  options.compressor = compressor;
  options.transport = "inproc";
  options.nodes = nodes;
  options.store = sotto::make_memory_store();
  options.timeout = std::chrono::milliseconds(30'000);
  return options;
}

inline sotto::OptimizerOptions at_rank(sotto::OptimizerOptions options, int rank) {
  options.rank = rank;
  return options;
}

/// Runs `node` for each rank in a thread of its own; what each threw, or nothing.
inline std::vector<std::string> play(int nodes, const std::function<void(int)>& node) {
  std::vector<std::string> thrown(static_cast<std::size_t>(nodes));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < nodes; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        node(rank);
      } catch (const std::exception& exception) {
        thrown[static_cast<std::size_t>(rank)] = exception.what();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return thrown;
}

using Made = std::unique_ptr<torch::optim::Optimizer>;
using Maker = std::function<Made(std::vector<torch::Tensor>)>;

template <typename Optimizer, typename Options>
Maker maker(Options options) {
  return [options](std::vector<torch::Tensor> parameters) {
    return std::make_unique<Optimizer>(std::move(parameters), options);
  };
}

inline std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const sotto::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

inline bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace torch_test

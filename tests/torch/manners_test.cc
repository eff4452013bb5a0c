// What one expects of an optimizer of torch: gradients that are cleared, an object that is moved,
// state and groups that are looked into, steps that are left out, double precision.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "torch/nets.h"

#include <sotto/trainers/torch/parameter_state.h>

using namespace torch_test;

namespace {

torch::optim::AdamW adamw_of(Net& net) {
  return torch::optim::AdamW(net->parameters(), torch::optim::AdamWOptions(0.01));
}

torch::optim::SGD heavy_sgd_of(Net& net) {
  return torch::optim::SGD(net->parameters(),
                           torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1));
}

template <typename State>
State* state_of(torch::optim::Optimizer& optimizer, const torch::Tensor& parameter) {
  const auto found = optimizer.state().find(sotto::torch::state_key(parameter));
  return found == optimizer.state().end() ? nullptr : dynamic_cast<State*>(found->second.get());
}

void spoil_gradients(Net& net) {
  for (const auto& parameter : net->parameters()) {
    parameter.mutable_grad() = torch::full_like(parameter, std::numeric_limits<float>::infinity());
  }
}

void backward(Net& net, const Batch& batch) {
  torch::mse_loss(net->forward(batch.x.to(net->first->weight.dtype())),
                  batch.y.to(net->first->weight.dtype()))
      .backward();
}

/// What the process writes to standard error in the object's life.
class CapturedErrors {
 public:
  CapturedErrors() : before_(::dup(STDERR_FILENO)), file_(std::tmpfile()) {
    ::dup2(::fileno(file_), STDERR_FILENO);
  }
  CapturedErrors(const CapturedErrors&) = delete;
  CapturedErrors& operator=(const CapturedErrors&) = delete;
  ~CapturedErrors() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    std::fclose(file_);
  }

  std::string text() const {
    std::string text(1 << 16, '\0');
    const auto length = ::pread(::fileno(file_), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    return text;
  }

 private:
  int before_;
  std::FILE* file_;
};

}  // namespace

TEST_CASE("gradients are filled with 0 or taken away, as asked") {
  for (const bool to_none : {false, true}) {
    Net net = make_net();
    Net plain = make_net();
    DistributedOptimizer optimizer(heavy_sgd_of(net), job(1, "dpsgd"));
    auto reference = heavy_sgd_of(plain);
    for (const Batch& batch : make_batches(6, 8)) {
      optimizer.zero_grad(to_none);
      for (const auto& parameter : plain->parameters()) {
        if (to_none) {
          parameter.mutable_grad().reset();
        } else if (parameter.grad().defined()) {
          parameter.mutable_grad().zero_();
        }
      }
      backward(net, batch);
      backward(plain, batch);
      optimizer.step();
      reference.step();
      CHECK(same_bits(net, plain));
    }
    optimizer.zero_grad(to_none);
    for (const auto& parameter : {net->first->weight, net->second->bias}) {
      CHECK(parameter.grad().defined() != to_none);
      CHECK((to_none || parameter.grad().abs().max().item<float>() == 0));
    }
    CHECK_FALSE(net->spare->weight.grad().defined());
  }
}

TEST_CASE("an optimizer that was moved goes on with the same bits") {
  const auto batches = make_batches(9, 8);
  for (const bool own_rule : {false, true}) {
    Net stays = make_net();
    Net moves = make_net();
    const auto make = [&](Net& net) {
      auto options = job(1, "dcd");
      options.step_rule.rule = "adam";
      options.step_rule.learning_rate = 0.01;
      return own_rule ? DistributedOptimizer(net->named_parameters(), options)
                      : DistributedOptimizer(adamw_of(net), options);
    };
    const auto slower = [](DistributedOptimizer& optimizer) {
      optimizer.param_groups()[0].options().set_lr(0.004);
    };
    DistributedOptimizer reference = make(stays);
    std::vector<DistributedOptimizer> all;
    all.push_back(make(moves));
    std::optional<DistributedOptimizer> other;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      if (i == 3) {
        other.emplace(std::move(all.front()));
      }
      if (i == 6) {
        Net unused = make_net(2);
        all.front() = make(unused);
        all.front() = std::move(*other);
        other.reset();
      }
      DistributedOptimizer& moved = other ? *other : all.front();
      if (i == 4 || i == 7) {
        slower(reference);
        slower(moved);
      }
      take_step(stays, reference, batches[i]);
      take_step(moves, moved, batches[i]);
      CHECK(same_bits(stays, moves));
    }
    CHECK(all.front().node().round() == batches.size());
    CHECK(all.front().state().size() == reference.state().size());
    all.front().finish();
  }
}

TEST_CASE("state and groups of the wrapped optimizer are found under the model's parameters") {
  Net net = make_net();
  Net plain = make_net();
  DistributedOptimizer optimizer(adamw_of(net), job(1, "dpsgd"));
  auto reference = adamw_of(plain);
  CHECK(optimizer.state().empty());
  for (const Batch& batch : make_batches(4, 8)) {
    take_step(net, optimizer, batch);
    take_step(plain, reference, batch);
  }
  CHECK(optimizer.state().size() == reference.state().size());
  CHECK(optimizer.param_groups()[0].params().size() == net->parameters().size());
  using State = torch::optim::AdamWParamState;
  for (std::size_t i = 0; i < net->parameters().size(); ++i) {
    auto* ours = state_of<State>(optimizer, net->parameters()[i]);
    auto* theirs = state_of<State>(reference, plain->parameters()[i]);
    REQUIRE((ours == nullptr) == (theirs == nullptr));
    if (ours != nullptr) {
      CHECK(ours->step() == 4);
      CHECK(same_bits(ours->exp_avg(), theirs->exp_avg()));
      // What is changed there counts.
      const torch::NoGradGuard no_grad;
      ours->exp_avg().zero_();
      theirs->exp_avg().zero_();
    }
  }
  for (const Batch& batch : make_batches(4, 8, 6)) {
    take_step(net, optimizer, batch);
    take_step(plain, reference, batch);
  }
  CHECK(same_bits(net, plain));
}

TEST_CASE("state that there is from the start, as Adagrad's, is found too") {
  Net net = make_net();
  DistributedOptimizer optimizer(torch::optim::Adagrad(net->parameters(), 0.1), job(1, "dcd"));
  for (const auto& parameter : net->parameters()) {
    CHECK(state_of<torch::optim::AdagradParamState>(optimizer, parameter) != nullptr);
  }
}

TEST_CASE("alone, a step that is skipped has not been") {
  Net net = make_net();
  Net plain = make_net();
  DistributedOptimizer optimizer(heavy_sgd_of(net), job(1, "allreduce"));
  auto reference = heavy_sgd_of(plain);
  const auto batches = make_batches(6, 8);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    optimizer.zero_grad(true);
    backward(net, batches[i]);
    if (i == 0 || i == 3) {
      spoil_gradients(net);
      optimizer.skip_step();
    } else {
      optimizer.step();
      take_step(plain, reference, batches[i]);
    }
    CHECK(same_bits(net, plain));
  }
  CHECK(optimizer.node().round() == batches.size());
}

TEST_CASE("a node that skips a step goes along with the gradient 0") {
  constexpr int kNodesThatSkip = 3;
  for (const char* algorithm : {"allreduce", "dcd", "dpsgd"}) {
    CAPTURE(algorithm);
    std::vector<std::vector<Net>> models;
    for (const bool skips : {false, true}) {
      std::vector<Net>& nets = models.emplace_back();
      std::vector<std::vector<Batch>> batches;
      for (std::uint64_t rank = 0; rank < kNodesThatSkip; ++rank) {
        nets.push_back(make_net());
        batches.push_back(make_batches(6, 8, 30 + rank));
      }
      const auto options = job(kNodesThatSkip, algorithm);
      const auto thrown = play(kNodesThatSkip, [&](int rank) {
        const auto r = static_cast<std::size_t>(rank);
        DistributedOptimizer optimizer(heavy_sgd_of(nets[r]), at_rank(options, rank));
        for (std::size_t i = 0; i < batches[r].size(); ++i) {
          optimizer.zero_grad(false);
          if (i % kNodesThatSkip != r) {
            backward(nets[r], batches[r][i]);
            optimizer.step();
          } else if (skips) {
            spoil_gradients(nets[r]);
            optimizer.skip_step();
          } else {
            optimizer.step();
          }
        }
        optimizer.finish();
      });
      CHECK(thrown == std::vector<std::string>(kNodesThatSkip));
    }
    for (std::size_t rank = 0; rank < kNodesThatSkip; ++rank) {
      CHECK(same_bits(models[0][rank], models[1][rank]));
    }
  }
}

TEST_CASE("a step of which some has been sent is not skipped") {
  auto options = job(2, "choco");
  options.buckets = 2;
  std::vector<Net> nets = {make_net(), make_net()};
  const auto thrown = play(2, [&](int rank) {
    Net& net = nets[static_cast<std::size_t>(rank)];
    DistributedOptimizer optimizer(heavy_sgd_of(net), at_rank(options, rank));
    optimizer.zero_grad();
    if (!optimizer.start_in_backward()) {
      throw std::runtime_error("it does not start in the backward pass");
    }
    backward(net, make_batches(1, 8).front());
    if (!contains(message_of([&] { optimizer.skip_step(); }), "has been sent")) {
      throw std::runtime_error("a step that was begun is skipped");
    }
    optimizer.step();
    optimizer.zero_grad();
    optimizer.start_in_backward();
    optimizer.skip_step();  // nothing has been sent
    optimizer.finish();
  });
  CHECK(thrown == std::vector<std::string>(2));
}

TEST_CASE("a loss scaler's life: overflows on some nodes, steps that are left out, growth") {
  constexpr int kNodes = 3;
  const auto unscale = [](const std::vector<torch::Tensor>& parameters, double scale) {
    bool finite = true;
    for (const torch::Tensor& parameter : parameters) {
      if (parameter.grad().defined()) {
        parameter.mutable_grad() /= scale;
        finite = finite && parameter.grad().isfinite().all().item<bool>();
      }
    }
    return finite;
  };
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    for (const char* algorithm : {"allreduce", "dcd"}) {
      std::vector<Net> nets;
      std::vector<std::vector<Batch>> batches;
      std::vector<int> skipped(kNodes);
      for (std::uint64_t rank = 0; rank < kNodes; ++rank) {
        nets.push_back(make_net());
        nets.back()->to(type);
        batches.push_back(make_batches(24, 8, 40 + rank));
      }
      const auto options = job(kNodes, algorithm);
      const auto loss_of = [&](Net& net, const Batch& batch) {
        // In float32: not every libtorch multiplies matrices of halves on a CPU.
        auto x = batch.x;
        for (const auto& layer : {net->first, net->second}) {
          x = torch::tanh(x.matmul(layer->weight.to(torch::kFloat).t()) +
                          layer->bias.to(torch::kFloat));
        }
        return torch::mse_loss(x, batch.y);
      };
      const double before = loss_of(nets[0], batches[0][0]).item<double>();
      const auto thrown = play(kNodes, [&](int rank) {
        const auto r = static_cast<std::size_t>(rank);
        Net& net = nets[r];
        DistributedOptimizer optimizer(heavy_sgd_of(net), at_rank(options, rank));
        const double too_large = type == torch::kHalf ? 1e7 : 1e39;
        double scale = rank == 1 ? too_large : 1024;
        int good = 0;
        for (const Batch& batch : batches[r]) {
          optimizer.zero_grad();
          const auto loss = loss_of(net, batch);
          (loss * scale).backward();
          if (unscale(net->parameters(), scale)) {  // divides; false where one is not finite
            optimizer.step();
            scale *= ++good % 4 == 0 ? 2 : 1;
          } else {
            optimizer.skip_step();
            good = 0;
            scale /= 2;
            ++skipped[r];
          }
        }
        optimizer.finish_with_mean();
      });
      CHECK(thrown == std::vector<std::string>(kNodes));
      CHECK(skipped[1] > 0);
      CHECK(skipped[1] < 24);
      CHECK(loss_of(nets[0], batches[0][0]).item<double>() < before);
      CHECK(same_bits(nets[0], nets[1]));
    }
  }
}

TEST_CASE("what a node warns of is printed as torch prints its warnings") {
  std::vector<Net> nets = {make_net(), make_net()};
  const auto batches = make_batches(6, 8);
  const auto options = job(2, "dpsgd");
  const CapturedErrors errors;
  const auto thrown = play(2, [&](int rank) {
    Net& net = nets[static_cast<std::size_t>(rank)];
    DistributedOptimizer optimizer(heavy_sgd_of(net), at_rank(options, rank));
    for (std::size_t i = 0; i < batches.size(); ++i) {
      if (rank == 1 && i == 3) {
        optimizer.param_groups()[0].options().set_lr(0.0625);
      }
      take_step(net, optimizer, batches[i]);
    }
    optimizer.finish();
  });
  const std::string text = errors.text();
  CHECK(thrown == std::vector<std::string>(2));
  CHECK_MESSAGE(contains(text, "a learning rate of 0.0625"), text);
}

TEST_CASE("float64 is trained through a float32 copy") {
  const auto batches = make_batches(10, 8);
  Net single = make_net();
  DistributedOptimizer reference(adamw_of(single), job(1, "dpsgd"));
  std::stringstream saved;
  Net half_way = make_net();
  Net twice = make_net();
  twice->to(torch::kDouble);
  half_way->to(torch::kDouble);
  DistributedOptimizer optimizer(adamw_of(twice), job(1, "dpsgd"));
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (i == 5) {
      torch::save(optimizer, saved);
    }
    take_step(single, reference, batches[i]);
    optimizer.zero_grad();
    backward(twice, batches[i]);
    optimizer.step();
  }
  const bool kept = twice->first->weight.scalar_type() == torch::kDouble;
  CHECK(kept);
  double most = 0;
  for (std::size_t i = 0; i < single->parameters().size(); ++i) {
    most = std::max(most,
                    (single->parameters()[i] - twice->parameters()[i]).abs().max().item<double>());
  }
  CHECK(most < 1e-4);
  CHECK(most > 0);  // of gradients in double precision

  DistributedOptimizer resumed(adamw_of(half_way), job(1, "dpsgd"));
  torch::load(resumed, saved);
  for (std::size_t i = 5; i < batches.size(); ++i) {
    resumed.zero_grad();
    backward(half_way, batches[i]);
    resumed.step();
  }
  CHECK(same_bits(half_way, twice));
}

// A layer of experts that lie at several nodes, by sotto::torch::ExpertLink.
#include "torch/nets.h"

#include <chrono>
#include <stdexcept>

#include <sotto/trainers/torch/expert_link.h>

using namespace torch_test;

namespace {

using sotto::torch::ExpertLink;
using sotto::torch::ExpertLinkOptions;

constexpr std::int64_t kExpertWidth = 5;
constexpr std::int64_t kExpertCount = 8;
constexpr std::int64_t kTokens = 24;  // of all nodes together

ExpertLinkOptions expert_options(int nodes, const std::shared_ptr<sotto::Store>& store) {
  ExpertLinkOptions options;
  options.layer = {.experts = kExpertCount,
                   .width = kExpertWidth,
                   .tokens = kTokens,
                   .gate = "top:2",
                   .capacity = 0};
  options.place = {
      .nodes = nodes, .transport = "inproc", .store = store, .timeout = std::chrono::seconds(20)};
  return options;
}

ExpertLinkOptions expert_rank(ExpertLinkOptions options, int rank) {
  options.place.rank = rank;
  return options;
}

/// Experts, tokens, scores and what the loss makes of the layer's output, the same wherever made.
struct ExpertWork {
  explicit ExpertWork(unsigned seed = 3) {
    torch::manual_seed(seed);
    for (std::int64_t e = 0; e < kExpertCount; ++e) {
      experts.emplace_back(kExpertWidth, kExpertWidth);
    }
    x = torch::randn({kTokens, kExpertWidth}, torch::requires_grad());
    scores = torch::randn({kTokens, kExpertCount}, torch::requires_grad());
    loss = torch::randn({kTokens, kExpertWidth});
  }
  torch::Tensor expert(std::size_t e, const torch::Tensor& rows) {
    return torch::tanh(experts.at(e)->forward(rows));
  }
  sotto::torch::ExpertFunction function() {
    return [this](std::size_t e, const torch::Tensor& rows) { return expert(e, rows); };
  }
  /// All that the backward pass makes.
  std::vector<torch::Tensor> gradients() const {
    std::vector<torch::Tensor> all{x.grad(), scores.grad()};
    for (const auto& expert : experts) {
      all.push_back(expert->weight.grad());
      all.push_back(expert->bias.grad());
    }
    return all;
  }

  std::vector<torch::nn::Linear> experts;
  torch::Tensor x, scores, loss;
};

/// Equal work for each of two nodes, made in one thread, as torch has one generator.
std::vector<ExpertWork> two_alike() {
  std::vector<ExpertWork> works;
  works.emplace_back();
  works.emplace_back();
  return works;
}

/// The layer in plain libtorch: each token's two best experts, weighted by a softmax over these.
torch::Tensor plain_layer(ExpertWork& work) {
  const auto best = work.scores.topk(2, 1);
  const auto weights = torch::softmax(std::get<0>(best), 1);
  std::vector<torch::Tensor> all;
  for (std::size_t e = 0; e < work.experts.size(); ++e) {
    all.push_back(work.expert(e, work.x));
  }
  const auto chosen = std::get<1>(best).unsqueeze(2).expand({kTokens, 2, kExpertWidth});
  return (torch::stack(all, 1).gather(1, chosen) * weights.unsqueeze(2)).sum(1);
}

/// The outputs of the layer over `nodes` nodes, each with its run of the tokens. `work` then has
/// the gradients.
torch::Tensor over_nodes(ExpertWork& work, int nodes, ExpertLinkOptions options) {
  std::vector<torch::Tensor> y(static_cast<std::size_t>(nodes));
  std::vector<torch::Tensor> x(y.size());
  std::vector<torch::Tensor> scores(y.size());
  const auto thrown = play(nodes, [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const std::int64_t share = kTokens / nodes;
    const auto own = [&](const torch::Tensor& all) {
      return all.detach().narrow(0, rank * share, share).clone();
    };
    ExpertLink link(expert_rank(options, rank));
    CHECK(link.first_expert() == at * link.own_experts());
    x[at] = own(work.x).set_requires_grad(true);
    scores[at] = own(work.scores).set_requires_grad(true);
    y[at] = link.forward(x[at], scores[at], work.function());
    (y[at] * own(work.loss)).sum().backward();
  });
  CHECK(thrown == std::vector<std::string>(y.size()));
  const auto joined = [](std::vector<torch::Tensor>& parts, bool gradient) {
    for (torch::Tensor& part : parts) {
      part = gradient ? part.grad() : part.detach();
    }
    return torch::cat(parts);
  };
  work.x.mutable_grad() = joined(x, true);
  work.scores.mutable_grad() = joined(scores, true);
  return joined(y, false);
}

}  // namespace

TEST_CASE("experts at several nodes are to the bit the layer of one process") {
  ExpertWork plain;
  const torch::Tensor y = plain_layer(plain);
  (y * plain.loss).sum().backward();
  ExpertWork alone;
  const torch::Tensor of_one = over_nodes(alone, 1, expert_options(1, sotto::make_memory_store()));
  CHECK(torch::allclose(of_one, y, 1e-5, 1e-6));
  for (std::size_t i = 0; i < plain.gradients().size(); ++i) {
    CHECK(torch::allclose(alone.gradients()[i], plain.gradients()[i], 1e-4, 1e-5));
  }
  for (const auto& transport : sotto::transports()) {
    if (!transport.available || transport.name == "nccl") {
      continue;
    }
    for (const int nodes : {2, 4, 8}) {
      CAPTURE(transport.name);
      CAPTURE(nodes);
      ExpertWork work;
      ExpertLinkOptions options = expert_options(nodes, sotto::make_memory_store());
      options.place.transport = transport.name;
      CHECK(same_bits(over_nodes(work, nodes, options), of_one));
      for (std::size_t i = 0; i < alone.gradients().size(); ++i) {
        CHECK(same_bits(work.gradients()[i], alone.gradients()[i]));
      }
    }
  }
}

TEST_CASE("compressed rows are near the exact ones, and fewer bytes") {
  ExpertWork exact;
  ExpertWork coarse;
  const auto options = expert_options(4, sotto::make_memory_store());
  ExpertLinkOptions few = expert_options(4, sotto::make_memory_store());
  few.layer.compressor = "fp16";
  few.layer.gradient_compressor = "quant:8";
  const torch::Tensor y = over_nodes(exact, 4, options);
  const torch::Tensor near = over_nodes(coarse, 4, few);
  CHECK(!same_bits(near, y));
  CHECK(torch::allclose(near, y, 1e-2, 1e-2));
  CHECK(torch::allclose(coarse.x.grad(), exact.x.grad(), 0.1, 0.1));
  few.layer.gradient_compressor = "sign";
  CHECK(message_of([&] { ExpertLink(expert_rank(few, 0)); }) != "nothing was thrown");
}

TEST_CASE("layers are under way together, and without graphs experts only answer") {
  ExpertLinkOptions options = expert_options(2, sotto::make_memory_store());
  options.layers = 2;
  auto works = two_alike();
  const auto thrown = play(2, [&](int rank) {
    ExpertWork& work = works[static_cast<std::size_t>(rank)];
    ExpertLink link(expert_rank(options, rank));
    // A layer on the layer below, in the tokens' own type.
    const auto x = work.x.detach().to(torch::kFloat64).set_requires_grad(true);
    const auto first = link.forward(x, work.scores, work.function(), 0);
    CHECK((first.scalar_type() == torch::kFloat64));
    const auto second = link.forward(first, work.scores, work.function(), 1);
    second.sum().backward();
    CHECK((x.grad().scalar_type() == torch::kFloat64));
    CHECK(x.grad().abs().sum().item<double>() > 0);
    const torch::NoGradGuard guard;
    const auto before = link.bytes_sent();
    const auto answer = link.forward(x, work.scores, work.function());
    CHECK(!answer.requires_grad());
    CHECK(same_bits(answer, first));
    // Both nodes have the same tokens: as many rows come for own experts as stay with these.
    const std::uint64_t frames = 2 * (64 + 2 * link.own_experts());
    CHECK(before > 0);
    CHECK(link.bytes_sent() - before == frames + 2 * kTokens * kExpertWidth * sizeof(float));
  });
  CHECK(thrown == std::vector<std::string>(2));
}

TEST_CASE("which tokens are dropped depends on the scores alone") {
  ExpertLinkOptions options = expert_options(2, sotto::make_memory_store());
  options.layer.gate = "top:1";
  options.layer.capacity = 1;  // 3 tokens of 24 an expert
  auto works = two_alike();
  const auto thrown = play(2, [&](int rank) {
    ExpertWork& work = works[static_cast<std::size_t>(rank)];
    ExpertLink link(expert_rank(options, rank));
    const auto scores = torch::zeros({kTokens, kExpertCount});  // all choose expert 0
    const auto y = link.forward(work.x, scores, work.function());
    CHECK(link.exchange().dropped() == kTokens - 3);
    CHECK(y.narrow(0, 3, kTokens - 3).abs().max().item<double>() == 0);
    CHECK(torch::allclose(y.narrow(0, 0, 3), work.expert(0, work.x.narrow(0, 0, 3)), 1e-5, 1e-6));
  });
  CHECK(thrown == std::vector<std::string>(2));
}

TEST_CASE("what does not fit a link of experts is refused") {
  const auto store = sotto::make_memory_store();
  const auto making = [&](const std::function<void(ExpertLinkOptions&)>& change) {
    ExpertLinkOptions options = expert_rank(expert_options(2, store), 0);
    change(options);
    return message_of([&] { ExpertLink{options}; });
  };
  CHECK(contains(making([](auto& options) { options.place.rank = 2; }), "rank"));
  CHECK(contains(making([](auto& options) { options.place.nodes.reset(); }), "nodes"));
  CHECK(contains(making([](auto& options) {
                   options.place.nodes = -3;
                   options.place.rank.reset();
                 }),
                 "nodes"));
  CHECK(contains(making([](auto& options) { options.layers = 0; }), "layers"));
  CHECK(contains(making([](auto& options) { options.layer.experts = 3; }), "experts"));
  CHECK(contains(making([](auto& options) { options.place.store = nullptr; }), "a place to meet"));
  ExpertWork work;
  ExpertLink link(expert_rank(expert_options(2, store), 0));
  const auto going = [&](const torch::Tensor& x, const torch::Tensor& scores, int layer = 0) {
    return message_of([&] { link.forward(x, scores, work.function(), layer); });
  };
  CHECK(contains(going(work.x.narrow(1, 0, 2), work.scores), "rows of 5 elements"));
  CHECK(contains(going(torch::zeros({kTokens + 1, kExpertWidth}), work.scores), "at most 24"));
  CHECK(contains(going(work.x, work.scores.narrow(0, 0, 3)), "24 × 8"));
  CHECK(contains(going(work.x, work.scores, 1), "layers 0 to 0"));
}

TEST_CASE("experts that throw end the link, here by their own words") {
  for (const bool wrong_shape : {false, true}) {
    const auto options = expert_options(2, sotto::make_memory_store());
    auto works = two_alike();
    const auto thrown = play(2, [&](int rank) {
      ExpertWork& work = works[static_cast<std::size_t>(rank)];
      ExpertLink link(expert_rank(options, rank));
      link.forward(work.x, work.scores, [&](std::size_t e, const torch::Tensor& rows) {
        if (e == 6 && !wrong_shape) {
          throw std::runtime_error("expert 6 is ill");
        }
        return e == 6 ? rows.narrow(1, 0, 2) : work.expert(e, rows);
      });
    });
    CHECK(contains(thrown[0], "node 1"));
    CHECK(contains(thrown[1], wrong_shape ? "experts" : "expert 6 is ill"));
  }
}

TEST_CASE("a second backward pass, and one of tokens that were replaced, are refused") {
  const auto options = expert_options(2, sotto::make_memory_store());
  auto works = two_alike();
  const auto thrown = play(2, [&](int rank) {
    ExpertWork& work = works[static_cast<std::size_t>(rank)];
    ExpertLink link(expert_rank(options, rank));
    const auto stale = link.forward(work.x, work.scores, work.function()).sum();
    const auto fresh = link.forward(work.x, work.scores, work.function()).sum();
    CHECK(contains(message_of([&] { stale.backward(); }), "numbers of their own"));
    fresh.backward({}, true);
    CHECK(contains(message_of([&] { fresh.backward(); }), "numbers of their own"));
  });
  CHECK(thrown == std::vector<std::string>(2));
}

TEST_CASE("other settings, scores that are not finite, and a request to stop end a link") {
  const auto store = sotto::make_memory_store();
  auto works = two_alike();
  const auto thrown = play(2, [&](int rank) {
    ExpertLinkOptions options = expert_rank(expert_options(2, store), rank);
    options.layer.compressor = rank == 0 ? "none" : "fp16";
    ExpertWork& work = works[static_cast<std::size_t>(rank)];
    ExpertLink link(options);
    link.forward(work.x, work.scores, work.function());
  });
  CHECK((thrown[0] + thrown[1]).find("another list of stages") != std::string::npos);
  ExpertWork work;
  ExpertLink alone(expert_rank(expert_options(1, sotto::make_memory_store()), 0));
  const auto infinite = torch::full({kTokens, kExpertCount}, INFINITY);
  CHECK_THROWS_AS(alone.forward(work.x, infinite, work.function()), RunFault);
  CHECK_THROWS_AS(alone.forward(work.x, work.scores, work.function()), RunFault);
  ExpertLinkOptions stopped = expert_rank(expert_options(2, sotto::make_memory_store()), 1);
  stopped.place.interrupted = [] { return true; };
  ExpertLink waiting(stopped);
  CHECK_THROWS_AS(waiting.forward(work.x, work.scores, work.function()), RunFault);
}

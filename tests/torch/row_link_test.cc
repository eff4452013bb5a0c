// A model cut between two nodes by sotto::torch::RowLink.
#include "torch/nets.h"

#include <chrono>

#include <sotto/trainers/torch/row_link.h>

using namespace torch_test;

namespace {

using sotto::torch::RowLink;
using sotto::torch::RowLinkOptions;

constexpr std::int64_t kRowWidth = 9;
constexpr std::int64_t kLinkKeys = 12;
constexpr std::int64_t kLinkRows = 4;

/// Two linear layers, between which the model is cut, and the data.
struct TwoParts {
  TwoParts() {
    torch::manual_seed(3);
    lower = torch::nn::Linear(6, kRowWidth);
    upper = torch::nn::Linear(kRowWidth, 3);
    x = torch::randn({kLinkKeys, 6});
    y = torch::randn({kLinkKeys, 3});
  }
  torch::Tensor below(const torch::Tensor& keys) {
    return torch::tanh(lower->forward(x.index_select(0, keys)));
  }
  torch::Tensor loss(const torch::Tensor& rows, const torch::Tensor& keys) {
    return torch::mse_loss(upper->forward(rows), y.index_select(0, keys));
  }

  torch::nn::Linear lower{nullptr};
  torch::nn::Linear upper{nullptr};
  torch::Tensor x, y;
};

torch::Tensor keys_of_step(int step) {
  return (torch::arange(kLinkRows) + step * kLinkRows).remainder(kLinkKeys);
}

RowLinkOptions link_options(const std::shared_ptr<sotto::Store>& store) {
  RowLinkOptions options;
  options.link = {.width = kRowWidth, .rows = kLinkRows, .keys = kLinkKeys};
  options.place = {.transport = "inproc", .store = store, .timeout = std::chrono::seconds(20)};
  return options;
}

RowLinkOptions exact_options(const std::shared_ptr<sotto::Store>& store) {
  RowLinkOptions options = link_options(store);
  options.link.compressor = "none";
  options.link.gradient_compressor = "none";
  return options;
}

RowLinkOptions for_rank(RowLinkOptions options, int rank) {
  options.place.rank = rank;
  return options;
}

/// Trains the two parts at two nodes, and returns what is left of the loss.
double train_cut(TwoParts& parts, const RowLinkOptions& options, int steps) {
  double last = 0;
  const auto thrown = play(2, [&](int rank) {
    RowLink link(for_rank(options, rank));
    torch::optim::SGD optimizer(rank == 0 ? parts.lower->parameters() : parts.upper->parameters(),
                                0.1);
    for (int step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      const torch::Tensor keys = keys_of_step(step);
      if (rank == 0) {
        link.send(parts.below(keys), keys).backward();
      } else {
        const torch::Tensor loss = parts.loss(link.receive(keys), keys);
        loss.backward();
        last = loss.item<double>();
      }
      optimizer.step();
    }
  });
  CHECK(thrown == std::vector<std::string>(2));
  return last;
}

}  // namespace

TEST_CASE("a torch model cut between two nodes is the whole model, to the bit") {
  constexpr int kSteps = 25;
  TwoParts whole;
  auto parameters = whole.lower->parameters();
  for (const torch::Tensor& parameter : whole.upper->parameters()) {
    parameters.push_back(parameter);
  }
  torch::optim::SGD optimizer(parameters, 0.1);
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const torch::Tensor keys = keys_of_step(step);
    whole.loss(whole.below(keys), keys).backward();
    optimizer.step();
  }
  for (const auto& transport : sotto::transports()) {
    if (!transport.available || transport.name == "nccl") {
      continue;
    }
    CAPTURE(transport.name);
    TwoParts cut;
    RowLinkOptions options = exact_options(sotto::make_memory_store());
    options.place.transport = transport.name;
    train_cut(cut, options, kSteps);
    CHECK(same_bits(cut.lower->weight, whole.lower->weight));
    CHECK(same_bits(cut.lower->bias, whole.lower->bias));
    CHECK(same_bits(cut.upper->weight, whole.upper->weight));
    CHECK(same_bits(cut.upper->bias, whole.upper->bias));
  }
}

TEST_CASE("a cut torch model learns from keyed differences") {
  TwoParts exact;
  TwoParts keyed;
  const double right = train_cut(exact, exact_options(sotto::make_memory_store()), 300);
  const double near = train_cut(keyed, link_options(sotto::make_memory_store()), 300);
  CHECK(near < 1.2 * right + 0.01);
}

TEST_CASE("several batches are under way, and without graphs rows go one way") {
  RowLinkOptions options = exact_options(sotto::make_memory_store());
  options.link.batches = 2;
  TwoParts parts;
  std::vector<torch::Tensor> rows(3);
  std::uint64_t sent = 0;
  const auto thrown = play(2, [&](int rank) {
    RowLink link(for_rank(options, rank));
    if (rank == 0) {
      const auto first = link.send(parts.below(keys_of_step(0)), keys_of_step(0), 0);
      const auto second =
          link.send(parts.below(keys_of_step(1)).to(torch::kFloat64), keys_of_step(1), 1);
      (2 * first).backward();
      second.backward();
      const torch::NoGradGuard guard;
      link.send(parts.below(keys_of_step(2)), keys_of_step(2));
      sent = link.bytes_sent();
      CHECK(link.sends());
    } else {
      rows[0] = link.receive(keys_of_step(0), 0);
      rows[1] = link.receive(keys_of_step(1), 1);
      CHECK(rows[0].requires_grad());
      rows[0].sum().backward();
      rows[1].sum().backward();
      const torch::NoGradGuard guard;
      rows[2] = link.receive(keys_of_step(2));
      CHECK(!rows[2].requires_grad());
      CHECK(link.link().counts().again == 3 * kLinkRows);
    }
  });
  CHECK(thrown == std::vector<std::string>(2));
  for (int i = 0; i < 3; ++i) {
    CHECK(same_bits(rows[static_cast<std::size_t>(i)], parts.below(keys_of_step(i))));
  }
  CHECK(sent == 3 * (64 + 8 + kLinkRows * kRowWidth * 4));
  // ∂ of 2 Σ rows of the first batch, and of Σ rows of the second.
  TwoParts due;
  (2 * due.below(keys_of_step(0)).sum() + due.below(keys_of_step(1)).sum()).backward();
  CHECK(torch::allclose(parts.lower->weight.grad(), due.lower->weight.grad(), 1e-5, 1e-6));
}

TEST_CASE("what does not fit a link is refused") {
  const auto store = sotto::make_memory_store();
  RowLink link(for_rank(link_options(store), 0));
  TwoParts parts;
  const torch::Tensor keys = keys_of_step(0);
  const auto sending = [&](const torch::Tensor& rows, const torch::Tensor& with, int batch = 0) {
    return message_of([&] { link.send(rows, with, batch); });
  };
  CHECK(contains(sending(parts.below(keys), keys.to(torch::kInt32)), "keys"));
  CHECK(contains(sending(parts.below(keys), torch::arange(kLinkRows + 1)), "keys"));
  CHECK(contains(sending(parts.below(keys).narrow(0, 0, 2), keys), "rows"));
  CHECK(contains(sending(parts.below(keys).narrow(1, 0, 2), keys), "rows"));
  CHECK(contains(sending(parts.below(keys), keys, 1), "batches 0 to 0"));
  CHECK(contains(sending(parts.below(keys).detach(), keys), "NoGradGuard"));
  CHECK(contains(message_of([&] { link.receive(keys); }), "it sends"));
  CHECK(contains(message_of([&] { RowLink(for_rank(link_options(store), 2)); }), "rank"));
  RowLinkOptions wrong = link_options(store);
  wrong.link.compressor = "quant:1";
  CHECK(contains(message_of([&] { RowLink(for_rank(wrong, 0)); }), "contraction"));
  RowLinkOptions crowded = link_options(store);
  crowded.place.nodes = 3;
  CHECK(contains(message_of([&] { RowLink(for_rank(crowded, 0)); }), "nodes: '3'"));
  RowLinkOptions nowhere = link_options(nullptr);
  CHECK(contains(message_of([&] { RowLink(for_rank(nowhere, 0)); }), "a place to meet"));
}

TEST_CASE("an end with other keys, or one that leaves, ends the link and is named") {
  const auto store = sotto::make_memory_store();
  TwoParts parts;
  const auto thrown = play(2, [&](int rank) {
    RowLink link(for_rank(link_options(store), rank));
    const torch::NoGradGuard guard;
    if (rank == 0) {
      link.send(parts.below(keys_of_step(0)), keys_of_step(0));
      link.send(parts.below(keys_of_step(1)), keys_of_step(1));
    } else {
      link.receive(keys_of_step(0));
      link.receive(keys_of_step(2));
    }
  });
  CHECK(contains(thrown[1], "other keys, or another memory"));
  const auto left = play(2, [&, other = sotto::make_memory_store()](int rank) {
    RowLink link(for_rank(link_options(other), rank));
    if (rank == 0) {
      const torch::NoGradGuard guard;
      link.send(parts.below(keys_of_step(0)), keys_of_step(0));
    } else {
      const auto rows = link.receive(keys_of_step(0));
      link.receive(keys_of_step(1));
    }
  });
  CHECK(left[0].empty());
  CHECK(contains(left[1], "node 0"));
  // In the middle of a backward pass.
  const auto alone = play(2, [&, other = sotto::make_memory_store()](int rank) {
    RowLink link(for_rank(link_options(other), rank));
    if (rank == 0) {
      CHECK_THROWS_AS(link.send(parts.below(keys_of_step(0)), keys_of_step(0)).backward(),
                      RunFault);
    } else {
      link.receive(keys_of_step(0));
    }
  });
  CHECK(alone == std::vector<std::string>(2));
}

TEST_CASE("a wait of a torch link ends when it is told to") {
  RowLinkOptions options = for_rank(link_options(sotto::make_memory_store()), 1);
  options.place.interrupted = [] { return true; };
  RowLink link(options);
  CHECK_THROWS_AS(link.receive(keys_of_step(0)), RunFault);
}

TEST_CASE("a backward pass of a batch whose number was taken since is refused") {
  const auto store = sotto::make_memory_store();
  TwoParts parts;
  const auto thrown = play(2, [&](int rank) {
    RowLink link(for_rank(link_options(store), rank));
    const auto stale = rank == 0 ? link.send(parts.below(keys_of_step(0)), keys_of_step(0))
                                 : link.receive(keys_of_step(0)).sum();
    const auto fresh = rank == 0 ? link.send(parts.below(keys_of_step(1)), keys_of_step(1))
                                 : link.receive(keys_of_step(1)).sum();
    CHECK(contains(message_of([&] { stale.backward(); }), "other rows have gone"));
    fresh.backward();
  });
  CHECK(thrown == std::vector<std::string>(2));
}

TEST_CASE("ends of a torch link with other settings refuse each other") {
  const auto store = sotto::make_memory_store();
  TwoParts parts;
  const auto thrown = play(2, [&](int rank) {
    RowLinkOptions options = for_rank(link_options(store), rank);
    options.link.compressor = rank == 0 ? "quant:4" : "quant:3";
    RowLink link(options);
    const torch::NoGradGuard guard;
    if (rank == 0) {
      link.send(parts.below(keys_of_step(0)), keys_of_step(0));
    } else {
      link.receive(keys_of_step(0));
    }
  });
  CHECK(contains(thrown[1], "another list of stages"));
}

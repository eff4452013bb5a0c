// sotto::Optimizer on parameters in a device's memory: the caller's gradients are work on a stream
// of its own, which nobody waits for.
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "accelerator/trainer.h"

#include <sotto/base/error.h>

namespace sotto::test::optimizer_test {

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kDimension = 5000;

using Models = std::vector<std::vector<float>>;

OptimizerOptions options_of(std::string algorithm, std::string compressor) {
  auto options = options_for(kNodes, make_memory_store());
  options.algorithm = std::move(algorithm);
  options.compressor = std::move(compressor);
  options.lazy = algorithm_info(options.algorithm).eigenvalues_above > -1;
  return options;
}

/// Steps until so many rounds are done, then finishes.
Status train_until(Trainer& trainer, Round rounds) {
  while (trainer.optimizer->round() < rounds) {
    if (Status status = trainer.step(); !status.ok()) {
      return status;
    }
  }
  return trainer.optimizer->finish();
}

/// A node with the host takes `state` back and goes on.
Status go_on_with_host(OptimizerOptions options, Rank rank, std::span<const std::byte> state,
                       std::vector<float>& x, Round rounds) {
  options.rank = rank;
  Optimizer optimizer(options, x);
  if (Status status = optimizer.connect(); !status.ok()) {
    return status;
  }
  ByteReader in(state);
  if (Status status = optimizer.load(in); !status.ok()) {
    return status;
  }
  std::vector<float> gradient(x.size());
  while (optimizer.round() < rounds) {
    pull(rank, optimizer.round(), optimizer.parameters(), gradient);
    if (Status status = optimizer.step(gradient); !status.ok()) {
      return status;
    }
  }
  return optimizer.finish();
}

void check_all(const std::vector<Status>& statuses) {
  for (const Status& status : statuses) {
    CHECK_MESSAGE(status.ok(), status.message());
  }
}

/// The models after `rounds`, of nodes of which every `every`-th is on a device.
Models trained(const OptimizerOptions& options, Round rounds, int every) {
  Models x(kNodes, std::vector<float>(kDimension, 0.25F));
  check_all(play(kNodes, [&](Rank rank) -> Status {
    auto& model = x[static_cast<std::size_t>(rank)];
    if (every == 0 || rank % every != 0) {
      return train(options, rank, rounds, pull, model);
    }
    Trainer trainer(options, rank, model);
    Status status = train_until(trainer, rounds);
    model = trainer.model();
    return status;
  }));
  return x;
}

}  // namespace

TEST_CASE(
    "nodes with their models on devices leave the bits of those with the host, and beside them") {
  SOTTO_NEEDS_DEVICE();
  const std::pair<std::string, std::string> pairs[] = {
      {"dcd", "quant:8"},     {"dpsgd", "none"},       {"choco", "sign"},
      {"ecd", "grid:8:0.05"}, {"deepsqueeze", "sign"}, {"pushsum", "quant:4"},
      {"allreduce", "none"},  {"beer", "sign"},        {"choco", "topk:0.05"}};
  for (const auto& pair : pairs) {
    CAPTURE(pair.first);
    for (const bool overlap : {false, true}) {
      auto options = options_of(pair.first, pair.second);
      options.overlap = overlap;
      options.step_rule.momentum = 0.9;
      const Models host = trained(options, 50, 0);
      CHECK(trained(options, 50, 1) == host);
      CHECK(trained(options, 50, 2) == host);
    }
  }
}

TEST_CASE("buckets and gradients in parts on a device leave the bits of the host") {
  SOTTO_NEEDS_DEVICE();
  auto options = options_of("dcd", "quant:8");
  options.buckets = 2;
  const Models host = trained(options, 20, 0);
  CHECK(trained(options, 20, 1) == host);
  Models parts(kNodes);
  check_all(play(kNodes, [&](Rank rank) -> Status {
    Trainer trainer(options, rank, std::vector<float>(kDimension, 0.25F));
    for (Round round = 0; round < 20; ++round) {
      if (Status status = trainer.optimizer->begin_step(); !status.ok()) {
        return status;
      }
      trainer.gradient.compute(
          trainer.x.there(), [=](auto from, auto to) { pull(rank, round, from, to); },
          trainer.stream);
      for (const std::size_t first : {std::size_t{4096}, std::size_t{0}}) {
        const auto part =
            trainer.gradient.there().subspan(first, first == 0 ? 4096 : kDimension - first);
        if (Status status = trainer.optimizer->gradient_part(first, part); !status.ok()) {
          return status;
        }
      }
      if (Status status = trainer.optimizer->step(); !status.ok()) {
        return status;
      }
    }
    Status status = trainer.optimizer->finish();
    parts[static_cast<std::size_t>(rank)] = trainer.model();
    return status;
  }));
  CHECK(parts == host);
}

TEST_CASE(
    "what an optimizer on a device has saved goes on with the host, and the other way round") {
  SOTTO_NEEDS_DEVICE();
  const auto options = options_of("choco", "sign");
  const Models whole = trained(options, 20, 0);
  std::vector<ByteBuffer> saved(kNodes);
  auto first = options;
  first.store = make_memory_store();
  check_all(play(kNodes, [&](Rank rank) -> Status {
    Trainer trainer(first, rank, std::vector<float>(kDimension, 0.25F));
    Status status = train_until(trainer, 10);
    trainer.optimizer->save(saved[static_cast<std::size_t>(rank)]);
    return status;
  }));
  auto second = options;
  second.store = make_memory_store();
  Models x(kNodes, std::vector<float>(kDimension, 0.25F));
  check_all(play(kNodes, [&](Rank rank) -> Status {
    auto& model = x[static_cast<std::size_t>(rank)];
    const auto& state = saved[static_cast<std::size_t>(rank)];
    if (rank % 2 == 1) {
      return go_on_with_host(second, rank, state.bytes(), model, 20);
    }
    Trainer trainer(second, rank, model);
    trainer.announce = false;  // the first gradient is taken at what load has brought
    ByteReader in(state.bytes());
    if (Status status = trainer.optimizer->connect(); !status.ok()) {
      return status;
    }
    if (Status status = trainer.optimizer->load(in); !status.ok()) {
      return status;
    }
    Status status = train_until(trainer, 20);
    model = trainer.model();
    return status;
  }));
  CHECK(x == whole);
}

TEST_CASE("settings that are the host's are refused beside an accelerator") {
  SOTTO_NEEDS_DEVICE();
  auto options = options_for(1, make_memory_store());
  options.accelerator = cuda::make_accelerator();
  const DeviceFloats x(10);
  x.write(std::vector<float>(10, 1));
  const auto refused = [&](const OptimizerOptions& with, const char* word) {
    CHECK_THROWS_WITH_AS(Optimizer(with, x.there()), doctest::Contains(word), Error);
  };
  auto threads = options;
  threads.codec_threads = 2;
  refused(threads, "codec_threads");
  auto metered = options;
  metered.metered = true;
  refused(metered, "metered");
  auto hidden = options;
  hidden.privacy = PrivacyOptions{.clip_norm = 1, .noise_multiplier = 1};
  refused(hidden, "the noise of privacy");
  auto robust = options;
  robust.algorithm = "robust";
  refused(robust, "robust works on vectors of the host alone");
  std::vector<float> here(10, 1.0F);
  CHECK_THROWS_WITH_AS(Optimizer(options, here), doctest::Contains("memory elsewhere"), Error);
  Optimizer optimizer(options, x.there());
  CHECK_THROWS_WITH_AS(static_cast<void>(optimizer.step(here)), doctest::Contains("gradient"),
                       Error);
}

}  // namespace sotto::test::optimizer_test

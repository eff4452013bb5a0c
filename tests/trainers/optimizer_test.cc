#include <sotto/trainers/optimizer.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>

#include "support/scratch.h"
#include "support/skip.h"
#include "trainers/nodes.h"

namespace sotto::test::optimizer_test {

using namespace std::chrono_literals;

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kDimension = 40;

/// Pulls node i towards i, so that the common optimum is the mean of the ranks.
void pull(Rank rank, Round /*round*/, std::span<const float> x, std::span<float> gradient) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    gradient[k] = x[k] - static_cast<float>(rank);
  }
}

using Models = std::vector<std::vector<float>>;

Models zeros() { return Models(kNodes, std::vector<float>(kDimension)); }

Models trained(const OptimizerOptions& options, Round rounds) {
  Models x = zeros();
  const auto statuses = play(kNodes, [&](Rank rank) {
    return train(options, rank, rounds, pull, x[static_cast<std::size_t>(rank)]);
  });
  for (const Status& status : statuses) {
    CAPTURE(status.message());
    CHECK(status.ok());
  }
  return x;
}

}  // namespace

TEST_CASE("nodes that are pulled apart meet in the middle") {
  auto options = options_for(kNodes, make_memory_store());
  const Models x = trained(options, 300);
  for (const auto& model : x) {
    for (const float value : model) {
      CHECK(value == doctest::Approx(1.5).epsilon(0.1));
    }
  }
}

TEST_CASE("overlap changes nothing, for any algorithm") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    Models with[2];
    for (const bool overlap : {false, true}) {
      auto options = options_for(kNodes, make_memory_store());
      options.lazy = info.eigenvalues_above > -1;
      options.overlap = overlap;
      options.step_rule.momentum = 0.9;
      choose(options, info);
      with[overlap ? 1 : 0] = trained(options, 20);
    }
    CHECK(with[0] == with[1]);
    CHECK(with[0] != zeros());
  }
}

TEST_CASE("a saved optimizer goes on bit for bit") {
  const auto whole = trained(options_for(kNodes, make_memory_store()), 20);
  Models x = zeros();
  std::vector<std::vector<std::byte>> saved(kNodes);
  for (const Round end : {Round{8}, Round{20}}) {
    auto options = options_for(kNodes, make_memory_store());
    const auto statuses = play(kNodes, [&](Rank rank) -> Status {
      const auto r = static_cast<std::size_t>(rank);
      auto mine = options;
      mine.rank = rank;
      std::vector<float> model(kDimension);
      Optimizer optimizer(mine, model);
      if (end == 20) {
        if (Status status = optimizer.connect(); !status.ok()) {
          return status;
        }
        ByteReader in(saved[r]);
        if (Status status = optimizer.load(in); !status.ok() || !in.finished()) {
          return status;
        }
      }
      std::vector<float> gradient(kDimension);
      while (optimizer.round() < end) {
        pull(rank, optimizer.round(), optimizer.parameters(), gradient);
        if (Status status = optimizer.step(gradient); !status.ok()) {
          return status;
        }
      }
      if (Status status = optimizer.finish(); !status.ok()) {
        return status;
      }
      ByteBuffer out;
      optimizer.save(out);
      saved[r] = std::move(out).take();
      x[r] = model;
      CHECK(optimizer.standing().traffic.size() == 2);
      CHECK(optimizer.standing().traffic[0].frames == end);
      return {};
    });
    for (const Status& status : statuses) {
      CAPTURE(status.message());
      CHECK(status.ok());
    }
  }
  CHECK(x == whole);
}

TEST_CASE("a state that is saved once a step has begun is the one before that step") {
  for (const char* algorithm : {"dpsgd", "dcd", "choco", "adpsgd", "allreduce"}) {
    CAPTURE(algorithm);
    const auto fresh = [&] {
      auto options = options_for(kNodes, make_memory_store());
      options.algorithm = algorithm;
      return options;
    };
    const auto whole = trained(fresh(), 12);
    std::vector<ByteBuffer> saved(kNodes);
    for (const bool load : {false, true}) {
      Models x = zeros();
      const auto options = fresh();
      const auto statuses = play(kNodes, [&](Rank rank) -> Status {
        const auto r = static_cast<std::size_t>(rank);
        auto mine = options;
        mine.rank = rank;
        Optimizer optimizer(mine, x[r]);
        Status status = optimizer.connect();
        if (load && status.ok()) {
          ByteReader in(saved[r].bytes());
          status = optimizer.load(in);
        }
        std::vector<float> gradient(kDimension);
        while (status.ok() && optimizer.round() < 12) {
          status = optimizer.begin_step();
          if (!load && status.ok() && optimizer.round() == 5) {
            status = optimizer.drain();
            optimizer.save(saved[r]);
          }
          pull(rank, optimizer.round(), optimizer.parameters(), gradient);
          status = status.ok() ? optimizer.step(gradient) : status;
        }
        return status.ok() ? optimizer.finish() : status;
      });
      for (const Status& status : statuses) {
        CAPTURE(status.message());
        CHECK(status.ok());
      }
      CHECK(x == whole);
    }
  }
}

TEST_CASE("a saved state that is cut short, or of another shape, is refused") {
  auto options = options_for(1, make_memory_store());
  std::vector<float> x(kDimension);
  ByteBuffer out;
  Optimizer(options, x).save(out);
  for (std::size_t length = 0; length < out.bytes().size(); ++length) {
    Optimizer optimizer(options, x);
    ByteReader in(out.bytes().first(length));
    CAPTURE(length);
    CHECK_FALSE(optimizer.load(in).ok());
  }
  std::vector<float> shorter(kDimension - 1);
  Optimizer other(options, shorter);
  ByteReader in(out.bytes());
  CHECK_FALSE(other.load(in).ok());
}

TEST_CASE("no forged state makes an optimizer misbehave, whatever its algorithm") {
  constexpr std::uint64_t kSeed = 20;
  CAPTURE(kSeed);
  RandomStream random({.seed = kSeed, .purpose = Purpose::test});
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    auto options = options_for(kNodes, make_memory_store());
    options.lazy = info.eigenvalues_above > -1;
    choose(options, info);
    std::vector<float> x(kDimension);
    ByteBuffer out;
    Optimizer(options, x).save(out);
    for (int trial = 0; trial < 300; ++trial) {
      std::vector<std::byte> forged(out.bytes().begin(), out.bytes().end());
      for (std::uint64_t flips = 1 + random.below(4); flips > 0; --flips) {
        forged[random.below(forged.size())] = static_cast<std::byte>(random.below(256));
      }
      std::ranges::fill(x, 0.0F);
      Optimizer optimizer(options, x);
      ByteReader in(forged);
      const Status status = optimizer.load(in);
      CHECK((status.ok() || !status.message().empty()));
      CHECK(std::all_of(x.begin(), x.end(),
                        [&](float value) { return !status.ok() || std::isfinite(value); }));
    }
  }
}

TEST_CASE("a gradient that is not finite is named, and another may be given") {
  auto options = options_for(1, make_memory_store());
  std::vector<float> x(kDimension, 1.0F);
  Optimizer optimizer(options, x);
  std::vector<float> gradient(kDimension, 1.0F);
  gradient[7] = std::numeric_limits<float>::quiet_NaN();
  const Status status = optimizer.step(gradient);
  CHECK(status.fault() == Fault::non_finite);
  CHECK(contains(status.message(), "node 0, round 0"));
  CHECK(contains(status.message(), "7"));
  CHECK(optimizer.round() == 0);
  CHECK(x == std::vector<float>(kDimension, 1.0F));
  gradient[7] = 1;
  CHECK(optimizer.step(gradient).ok());
  CHECK(optimizer.round() == 1);
  CHECK(x[7] != 1);
}

TEST_CASE("the learning rate can be changed between steps") {
  std::vector<float> x(kDimension, 1.0F);
  Optimizer optimizer(options_for(1, make_memory_store()), x);
  const std::vector<float> gradient(kDimension, 1.0F);
  optimizer.set_learning_rate(0.25);
  REQUIRE(optimizer.step(gradient).ok());
  REQUIRE(optimizer.drain().ok());
  CHECK(x[0] == doctest::Approx(0.75).epsilon(0.01));
  for (const double bad :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_WITH_AS(optimizer.set_learning_rate(bad), doctest::Contains("lr: "), Error);
  }
}

TEST_CASE("a node alone has nobody to meet, and needs no place for it") {
  std::vector<float> x(kDimension, 1.0F);
  OptimizerOptions options;
  options.nodes = 1;
  Optimizer optimizer(options, x);
  REQUIRE(optimizer.step(std::vector<float>(kDimension, 1.0F)).ok());
  CHECK(optimizer.finish().ok());
}

TEST_CASE("a gradient of another length is refused") {
  std::vector<float> x(kDimension);
  Optimizer optimizer(options_for(1, make_memory_store()), x);
  const std::vector<float> gradient(kDimension + 1);
  CHECK(contains(refusal([&] { (void)optimizer.step(gradient); }), "41 elements"));
}

TEST_CASE("when one node starts apart, or with other settings, all say so at once") {
  auto options = options_for(kNodes, make_memory_store());
  options.timeout = 1h;
  const auto apart = play(kNodes, [&](Rank rank) {
    std::vector<float> x(kDimension, rank == 2 ? 1.0F : 0.0F);
    return train(options, rank, 3, pull, x);
  });
  for (const Status& status : apart) {
    CHECK(status.fault() == Fault::unexpected);
    CHECK(status.message().starts_with("node 2: other initial parameters"));
  }

  options.store = make_memory_store();
  const auto other = play(kNodes, [&](Rank rank) {
    auto mine = options;
    mine.step_rule.learning_rate = rank == 1 ? 0.5 : 0.25;
    std::vector<float> x(kDimension);
    return train(mine, rank, 3, pull, x);
  });
  for (const Status& status : other) {
    CHECK(status.message() == "node 1: other settings than node 0: lr is 0.5 here and 0.25 there");
  }
}

TEST_CASE("a store that a run has left its keys in serves the next run") {
  const Scratch scratch;
  const auto options_in = [&](std::chrono::milliseconds timeout) {
    auto options = options_for(kNodes, make_file_store(scratch.path().string()));
    options.transport = "zmq";
    options.timeout = timeout;
    return options;
  };
  if (!available("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  // Node 2 disagrees and gives up; the reason stays behind.
  const auto failed = play(kNodes, [&](Rank rank) {
    std::vector<float> x(kDimension, rank == 2 ? 1.0F : 0.0F);
    return train(options_in(1h), rank, 3, pull, x);
  });
  for (const Status& status : failed) {
    CHECK(status.fault() == Fault::unexpected);
  }
  const Models first = trained(options_in(1h), 20);
  CHECK(trained(options_in(1h), 20) == first);
  // All keys of a run that is over do not pass for a node that is missing.
  std::vector<float> x(kDimension);
  const Status alone = train(options_in(50ms), 1, 3, pull, x);
  CHECK(alone.fault() == Fault::deadline);
  CHECK(contains(alone.message(), "waiting for node 0"));
}

TEST_CASE("all nodes learn from node 0 which of them never came") {
  auto options = options_for(3, make_memory_store());
  options.timeout = 300ms;
  const auto statuses = play(2, [&](Rank rank) {
    std::vector<float> x(kDimension);
    return train(options, rank, 1, pull, x);
  });
  for (const Status& status : statuses) {
    CHECK(status.fault() == Fault::deadline);
    CHECK(status.message() ==
          "node 0: waiting for node 2: not there in time (the timeout is 0.3 s)");
  }
}

TEST_CASE("a node that never comes is a deadline that names it") {
  auto options = options_for(2, make_memory_store());
  options.timeout = 50ms;
  std::vector<float> x(kDimension);
  const Status status = train(options, 1, 1, pull, x);
  CHECK(status.fault() == Fault::deadline);
  CHECK(contains(status.message(), "waiting for node 0"));
}

TEST_CASE("requests that make no sense are refused when the optimizer is built") {
  std::vector<float> x(kDimension);
  const auto refused = [&](const std::function<void(OptimizerOptions&)>& change) {
    auto options = options_for(kNodes, make_memory_store());
    change(options);
    return refusal([&] { Optimizer(options, x); });
  };
  CHECK(contains(refused([](auto& o) { o.nodes = -1; }), "nodes"));
  CHECK(contains(refused([](auto& o) { o.nodes = 0; }), "WORLD_SIZE"));
  CHECK(contains(refused([](auto& o) { o.rank = kNodes; }), "rank"));
  CHECK(contains(refused([](auto& o) { o.algorithm = "none"; }), "dcd"));
  CHECK(contains(refused([](auto& o) { o.compressor = "topk:0.1"; }), "unbiased"));
  CHECK(contains(refused([](auto& o) { o.topology = "moebius"; }), "moebius"));
  CHECK(contains(refused([](auto& o) { o.timeout = 0ms; }), "timeout"));
  CHECK(contains(refused([](auto& o) { o.store = nullptr; }), "rendezvous"));
  CHECK(contains(refused([](auto& o) { o.step_rule.rule = "rprop"; }), "rprop"));
}

TEST_CASE("two texts of settings differ where they first differ") {
  const std::string here = settings_text({{"a", "1"}, {"b", "2"}});
  CHECK(here == "a=1\nb=2\n");
  CHECK(first_difference(here, here).empty());
  CHECK(first_difference(here, "a=1\nb=3\n") == "b is 2 here and 3 there");
  CHECK(first_difference(here, "a=1\n") == "b is 2 here and not given there");
  CHECK(first_difference("", "c=4\n") == "c is not given here and 4 there");
  CHECK(first_difference("a=1\n", "b=1\n") == "'a=1' here and 'b=1' there");
  // A line without a value, which only somebody else's text has.
  CHECK(first_difference(here, "a\nb=2\n") == "'a=1' here and 'a' there");
  CHECK(first_difference("a", "a=1") == "'a' here and 'a=1' there");
  CHECK(first_difference("a\n", "ab\n") == "'a' here and 'ab' there");
  CHECK(first_difference("=1", "=2") == "'=1' here and '=2' there");
}

TEST_CASE("a finite gradient whose update overflows ends the steps") {
  auto options = options_for(1, make_memory_store());
  options.algorithm = "dpsgd";
  options.step_rule = {.learning_rate = 1e10, .momentum = 0.9};
  std::vector<float> x(kDimension);
  Optimizer optimizer(options, x);
  CHECK(optimizer.step(std::vector<float>(kDimension, 1e30F)).fault() == Fault::non_finite);
  optimizer.set_learning_rate(0.1);
  const Status again = optimizer.step(std::vector<float>(kDimension, 0));
  CHECK(again.fault() == Fault::non_finite);
  CHECK_MESSAGE(contains(again.message(), "with a lower learning rate"), again.message());
  CHECK(optimizer.finish().fault() == Fault::non_finite);
  CHECK(x == std::vector<float>(kDimension, 0));
}

TEST_CASE(
    "a call that waits for a node that is silent ends once it is interrupted, and tells all") {
  for (const bool overlap : {true, false}) {
    CAPTURE(overlap);
    auto options = options_for(2, make_memory_store());
    options.overlap = overlap;
    options.timeout = 1h;
    std::atomic<bool> interrupted{false};
    std::atomic<bool> over{false};
    const auto ends = play(2, [&](Rank rank) {
      auto own = options;
      own.rank = rank;
      if (rank == 0) {
        own.interrupted = [&] { return interrupted.load(); };
      }
      std::vector<float> x(kDimension);
      Optimizer optimizer(own, x);
      Status status = optimizer.step(x);
      if (rank == 1) {
        while (!over) {  // computes for ever
          std::this_thread::yield();
        }
        return status.ok() ? optimizer.finish() : status;
      }
      interrupted = true;
      while (status.ok()) {
        status = optimizer.step(x);
      }
      over = true;
      return status;
    });
    CHECK(ends[0].fault() == Fault::stopped);
    CHECK_MESSAGE(contains(ends[0].message(), "stopped while waiting"), ends[0].message());
    CHECK(ends[1].fault() == Fault::peer_lost);
    CHECK_MESSAGE(contains(ends[1].message(), "node 0 was told to stop"), ends[1].message());
  }
}

}  // namespace sotto::test::optimizer_test

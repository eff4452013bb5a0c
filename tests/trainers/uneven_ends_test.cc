// Nodes that do not end, or meet, after the same number of steps: all are told at once, or go on as
// `join` says.
#include <algorithm>
#include <array>
#include <cstdint>
#include <future>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/trainers/optimizer.h>

#include "support/seed.h"
#include "support/skip.h"
#include "trainers/nodes.h"

namespace sotto::test::uneven_ends_test {

using namespace std::chrono_literals;

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kDimension = 16;
using Rounds = std::array<Round, kNodes>;

std::mt19937_64 drawn() {
  const std::uint64_t seed = test::drawn_seed();
  MESSAGE("seed ", seed);
  return std::mt19937_64(seed);
}

Rounds draw_rounds(std::mt19937_64& random) {
  Rounds rounds{};
  const Round fewest = 1 + random() % 6;
  for (Round& own : rounds) {
    own = fewest + random() % 5;
  }
  rounds[random() % kNodes] = fewest;
  rounds[random() % kNodes] = fewest + 5;
  return rounds;
}

void pull(Rank rank, Round round, std::span<const float> x, std::span<float> gradient) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    gradient[k] = x[k] - static_cast<float>(rank) + 0.1F * static_cast<float>((round + k) % 5);
  }
}

struct Outcome {
  Status status;
  Status step;  ///< what the last step gave
  Round rounds = 0;
  std::vector<float> model = std::vector<float>(kDimension);
  std::string reason;
};

/// What the two nodes of a LateLook wait for.
struct Moments {
  std::promise<void> looked;  ///< node 0, out of data, has read that node 1 has data
  std::promise<void> asked;   ///< node 1 has asked for the mean that ends its run
};

/// A node's store, in which node 0 gets its first answer about node 1's data late.
class LateLook final : public Store {
 public:
  LateLook(Store& store, Rank rank, Moments& moments)
      : store_(store), rank_(rank), moments_(moments) {}

  Status set(std::string_view key, std::span<const std::byte> value) override {
    Status status = store_.set(key, value);
    if (rank_ == 1 && key.ends_with("at/1-all") && std::exchange(first_, false)) {
      moments_.asked.set_value();
    }
    return status;
  }

  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override {
    auto value = store_.get(key, deadline);
    if (rank_ == 0 && key.ends_with("data/1-all") && std::exchange(first_, false)) {
      moments_.looked.set_value();
      moments_.asked.get_future().wait();
    }
    return value;
  }

  Status remove(std::string_view key) override { return store_.remove(key); }

 private:
  Store& store_;
  const Rank rank_;
  Moments& moments_;
  bool first_ = true;
};

/// Gives `rounds` gradients, or as many as are wanted; then `then`, and finish.
void go(OptimizerOptions options, Rank rank, Round rounds, Outcome& outcome,
        const std::function<Status(Optimizer&, Round)>& after_round = nullptr) {
  options.rank = rank;
  Optimizer optimizer(options, outcome.model);
  std::vector<float> gradient(kDimension);
  while (outcome.step.ok() && optimizer.round() < rounds) {
    outcome.step = optimizer.begin_step();
    if (outcome.step.ok()) {
      pull(rank, optimizer.round(), optimizer.parameters(), gradient);
      outcome.step = optimizer.step(gradient);
    }
    if (outcome.step.ok() && after_round) {
      outcome.step = after_round(optimizer, optimizer.round());
    }
  }
  outcome.status =
      outcome.step.ok() || outcome.step.fault() == Fault::ended ? optimizer.finish() : outcome.step;
  outcome.rounds = optimizer.round();
  outcome.reason = optimizer.end_reason();
}

std::vector<Outcome> go_all(
    OptimizerOptions options, const Rounds& rounds,
    const std::function<Status(Rank, Optimizer&, Round)>& after_round = nullptr) {
  options.store = make_memory_store();
  std::vector<Outcome> outcomes(kNodes);
  (void)play(kNodes, [&](Rank rank) -> Status {
    const auto own = static_cast<std::size_t>(rank);
    go(options, rank, rounds[own], outcomes[own], [&](Optimizer& optimizer, Round round) {
      return after_round ? after_round(rank, optimizer, round) : Status();
    });
    return {};
  });
  return outcomes;
}

/// Long enough that a wait for it would be found by the time limit of the tests.
OptimizerOptions options_of(const AlgorithmInfo& info, Join join = Join::none) {
  auto options = options_for(kNodes, nullptr);
  options.timeout = 1h;
  options.join = join;
  options.lazy = info.eigenvalues_above > -1;
  choose(options, info);
  return options;
}

bool tells(const std::string& text, std::string_view word) { return text.find(word) != text.npos; }

std::vector<std::string> transports_here() {
  std::vector<std::string> names;
  for (const std::string name : {"inproc", "gloo", "zmq"}) {
    if (available(name)) {
      names.push_back(name);
    }
  }
  return names;
}

/// The gradient of a node is zero from its own last round on, and all go to the longest.
std::vector<Outcome> padded(OptimizerOptions options, const Rounds& rounds) {
  options.join = Join::none;
  options.store = make_memory_store();
  std::vector<Outcome> outcomes(kNodes);
  (void)play(kNodes, [&](Rank rank) -> Status {
    Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    outcome.status = train(
        options, rank, *std::ranges::max_element(rounds),
        [&](Rank, Round round, std::span<const float> x, std::span<float> gradient) {
          std::ranges::fill(gradient, 0.0F);
          if (round < rounds[static_cast<std::size_t>(rank)]) {
            pull(rank, round, x, gradient);
          }
        },
        outcome.model);
    return {};
  });
  return outcomes;
}

constexpr Round kWhole = 20;

/// A node of a run that ended before its last round.
struct Half : Outcome {
  std::vector<std::byte> state;
};

/// Trains until all end, as node `told` is told to stop before its gradient number `at`.
std::vector<Half> stop_early(OptimizerOptions options, Rank told, Round at) {
  options.store = make_memory_store();
  std::vector<Half> halves(kNodes);
  (void)play(kNodes, [&](Rank rank) -> Status {
    Half& half = halves[static_cast<std::size_t>(rank)];
    auto own = options;
    own.rank = rank;
    Optimizer optimizer(own, half.model);
    std::vector<float> gradient(kDimension);
    while (half.step.ok() && optimizer.round() < kWhole) {
      if (rank == told && optimizer.round() == at) {
        optimizer.ask_to_end();
      }
      half.step = optimizer.begin_step();
      if (half.step.ok()) {
        pull(rank, optimizer.round(), optimizer.parameters(), gradient);
        half.step = optimizer.step(gradient);
      }
    }
    half.rounds = optimizer.round();
    half.reason = optimizer.end_reason();
    half.status = optimizer.drain();
    if (half.status.ok()) {
      ByteBuffer out;
      optimizer.save(out);
      half.state = std::move(out).take();
      std::vector<float> mean(kDimension);
      half.status = optimizer.mean_model(mean).status();
    }
    half.status = half.status.ok() ? optimizer.finish() : half.status;
    return {};
  });
  return halves;
}

/// Goes on from there to the end; `load_first`: before the nodes meet.
std::vector<Outcome> resume(OptimizerOptions options, const std::vector<Half>& halves,
                            bool load_first) {
  options.store = make_memory_store();
  std::vector<Outcome> outcomes(kNodes);
  (void)play(kNodes, [&](Rank rank) -> Status {
    const auto node = static_cast<std::size_t>(rank);
    Outcome& outcome = outcomes[node];
    auto own = options;
    own.rank = rank;
    Optimizer optimizer(own, outcome.model);
    ByteReader in(halves[node].state);
    Status& status = outcome.status;
    status = load_first ? Status() : optimizer.connect();
    status = status.ok() ? optimizer.load(in) : status;
    std::vector<float> gradient(kDimension);
    while (status.ok() && optimizer.round() < kWhole) {
      status = optimizer.begin_step();
      if (status.ok()) {
        pull(rank, optimizer.round(), optimizer.parameters(), gradient);
        status = optimizer.step(gradient);
      }
    }
    status = status.ok() ? optimizer.finish() : status;
    return {};
  });
  return outcomes;
}

}  // namespace

TEST_CASE(
    "nodes with different numbers of steps are told at once which node has finished, and when") {
  auto random = drawn();
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    const Rounds rounds = draw_rounds(random);
    CAPTURE(fmt::format("{} {} {} {}", rounds[0], rounds[1], rounds[2], rounds[3]));
    for (const Outcome& outcome : go_all(options_of(info), rounds)) {
      CAPTURE(outcome.status.message());
      CHECK(outcome.status.fault() == Fault::unexpected);
      CHECK(tells(outcome.status.message(), "has finished after"));
      CHECK(tells(outcome.status.message(), "join"));
    }
  }
}

TEST_CASE("nodes with different numbers of steps are told on every transport and in any mode") {
  auto random = drawn();
  for (const std::string& transport : transports_here()) {
    for (const bool local : {false, true}) {
      for (const bool overlap : {false, true}) {
        CAPTURE(transport);
        CAPTURE(local);
        CAPTURE(overlap);
        auto options = options_of(algorithm_info(local ? "allreduce" : "choco"));
        options.transport = transport;
        options.overlap = overlap;
        options.communication_interval = local ? 4 : 1;
        for (const Outcome& outcome : go_all(options, draw_rounds(random))) {
          CAPTURE(outcome.status.message());
          CHECK(outcome.status.fault() == Fault::unexpected);
          CHECK(tells(outcome.status.message(), "has finished after"));
        }
      }
    }
  }
}

TEST_CASE("with join = zeros a node that is out of data goes on with zero gradients, bit for bit") {
  auto random = drawn();
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    const Rounds rounds = draw_rounds(random);
    CAPTURE(fmt::format("{} {} {} {}", rounds[0], rounds[1], rounds[2], rounds[3]));
    const auto options = options_of(info, Join::zeros);
    const auto outcomes = go_all(options, rounds);
    const auto expected = padded(options, rounds);
    for (std::size_t node = 0; node < kNodes; ++node) {
      CHECK_MESSAGE(outcomes[node].status.ok(), outcomes[node].status.message());
      CHECK(outcomes[node].rounds == *std::ranges::max_element(rounds));
      // AD-PSGD averages with whom is there.
      CHECK((info.agreement == SettingsAgreement::loose ||
             outcomes[node].model == expected[node].model));
    }
  }
}

TEST_CASE("with join = zeros on every transport, with local steps and overlap") {
  auto random = drawn();
  for (const std::string& transport : transports_here()) {
    for (const Round interval : {Round{1}, Round{3}}) {
      CAPTURE(transport);
      CAPTURE(interval);
      const Rounds rounds = draw_rounds(random);
      auto options = options_of(algorithm_info("dpsgd"), Join::zeros);
      options.transport = transport;
      options.communication_interval = interval;
      const auto outcomes = go_all(options, rounds);
      const auto expected = padded(options, rounds);
      for (std::size_t node = 0; node < kNodes; ++node) {
        CHECK_MESSAGE(outcomes[node].status.ok(), outcomes[node].status.message());
        CHECK(outcomes[node].model == expected[node].model);
      }
    }
  }
}

TEST_CASE("with join = stop all end with the shortest, and say whose data are out") {
  auto random = drawn();
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    Rounds rounds{};
    rounds.fill(40);
    const std::size_t shortest = random() % kNodes;
    rounds[shortest] = 1 + random() % 9;
    const auto outcomes = go_all(options_of(info, Join::stop), rounds);
    for (const Outcome& outcome : outcomes) {
      CAPTURE(outcome.status.message());
      CHECK(outcome.status.ok());
      CHECK(outcome.reason == fmt::format("node {} is out of data", shortest));
      CHECK(outcome.rounds == outcomes.front().rounds);
      CHECK(outcome.rounds >= rounds[shortest]);
    }
    CHECK(outcomes[(shortest + 1) % kNodes].step.fault() == Fault::ended);
    // Algorithms that exchange with all others can be one round ahead at most.
    CHECK((info.agreement != SettingsAgreement::required || info.has("limit") ||
           outcomes.front().rounds <= rounds[shortest] + 2));
  }
}

TEST_CASE("nodes that finish after the same step need no join, and lose nothing with one") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    std::vector<Outcome> expected;
    for (const Join join : {Join::none, Join::zeros, Join::stop}) {
      Rounds rounds{};
      rounds.fill(7);
      const auto outcomes = go_all(options_of(info, join), rounds);
      for (std::size_t node = 0; node < kNodes; ++node) {
        CHECK_MESSAGE(outcomes[node].status.ok(), outcomes[node].status.message());
        CHECK(outcomes[node].rounds == 7);
        CHECK((expected.empty() || info.agreement == SettingsAgreement::loose ||
               outcomes[node].model == expected[node].model));
      }
      expected = outcomes;
    }
  }
}

TEST_CASE("a node that alone asks for the mean is named at once, and so are different rounds") {
  auto random = drawn();
  for (const AlgorithmInfo& info : algorithms()) {
    for (const bool alone : {true, false}) {
      CAPTURE(info.name);
      CAPTURE(alone);
      const Rank odd = static_cast<Rank>(random() % kNodes);
      const Round at = 1 + random() % 5;
      Rounds rounds{};
      rounds.fill(14);
      const auto mean_of = [&](Rank rank, Optimizer& optimizer, Round round) -> Status {
        const bool asks = rank == odd ? round == at : !alone && round == at + 3;
        std::vector<float> mean(kDimension);
        return asks ? optimizer.mean_model(mean).status() : Status();
      };
      for (const Outcome& outcome : go_all(options_of(info), rounds, mean_of)) {
        CAPTURE(outcome.status.message());
        CHECK(outcome.status.fault() == Fault::unexpected);
        CHECK(tells(outcome.status.message(), "mean"));
        CHECK(tells(outcome.status.message(), fmt::format("after {} rounds", at)));
      }
    }
  }
}

TEST_CASE("a mean that only some ask for before they finish is named, whichever node it is") {
  for (Rank odd = 0; odd < kNodes; ++odd) {
    Rounds rounds{};
    rounds.fill(5);
    const auto mean_of = [&](Rank rank, Optimizer& optimizer, Round round) -> Status {
      std::vector<float> mean(kDimension);
      return rank == odd && round == 5 ? optimizer.mean_model(mean).status() : Status();
    };
    for (const Outcome& outcome : go_all(options_of(algorithm_info("dcd")), rounds, mean_of)) {
      CAPTURE(outcome.status.message());
      CHECK(outcome.status.fault() == Fault::unexpected);
      CHECK(tells(outcome.status.message(), "asks for the mean model after 5 rounds"));
      CHECK(tells(outcome.status.message(), "has finished after 5 rounds"));
    }
  }
}

TEST_CASE("nodes out of data take part in the means that the others ask for") {
  auto random = drawn();
  for (const std::string name : {"allreduce", "choco", "pushsum"}) {
    CAPTURE(name);
    const Rounds rounds = draw_rounds(random);
    const auto mean_of = [&](Rank, Optimizer& optimizer, Round round) -> Status {
      std::vector<float> mean(kDimension);
      return round % 2 == 0 ? optimizer.mean_model(mean).status() : Status();
    };
    for (const Outcome& outcome :
         go_all(options_of(algorithm_info(name), Join::zeros), rounds, mean_of)) {
      CHECK_MESSAGE(outcome.status.ok(), outcome.status.message());
      CHECK(outcome.rounds == *std::ranges::max_element(rounds));
    }
  }
}

TEST_CASE("the mean that ends the run is not taken for one that a node with data asks for") {
  if (!available("zmq")) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  // Node 0 learns that node 1 has data, and looks for a mean only once node 1 ends with one.
  for (const Join join : {Join::zeros, Join::stop}) {
    const auto memory = make_memory_store();
    Moments moments;
    const auto statuses = play(2, [&](Rank rank) -> Status {
      OptimizerOptions options = options_for(2, std::make_shared<LateLook>(*memory, rank, moments));
      options.transport = "zmq";
      options.algorithm = "allreduce";
      options.join = join;
      options.rank = rank;
      std::vector<float> x(kDimension);
      Optimizer optimizer(options, x);
      std::vector<float> gradient(kDimension, 1);
      for (Round round = 0; round < 3; ++round) {
        if (Status status = optimizer.step(gradient); !status.ok()) {
          return status;
        }
      }
      if (rank == 1) {
        moments.looked.get_future().wait();
      }
      std::vector<float> mean(kDimension);
      return optimizer.finish_with_mean(mean).status();
    });
    for (const Status& status : statuses) {
      CHECK_MESSAGE(status.ok(), status.message());
    }
  }
}

TEST_CASE(
    "one node that is told to stop ends all after one round, which they can save and resume") {
  auto random = drawn();
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    const Rank told = static_cast<Rank>(random() % kNodes);
    const Round at = random() % 8;
    const auto halves = stop_early(options_of(info), told, at);
    for (const Half& half : halves) {
      CHECK_MESSAGE(half.status.ok(), half.status.message());
      // Where nodes are rounds apart one may have begun its last round before it hears of it.
      const bool apart = info.agreement == SettingsAgreement::loose || info.has("limit");
      const bool to_the_end = apart && halves[0].rounds == kWhole;
      CHECK((to_the_end || half.step.fault() == Fault::ended));
      CHECK(half.rounds == halves[0].rounds);
      CHECK(half.rounds >= at);
      CHECK((to_the_end || half.reason == fmt::format("node {} was told to stop", told)));
    }
    if (info.agreement == SettingsAgreement::loose) {
      continue;  // two of its runs differ anyway
    }
    Rounds rounds{};
    rounds.fill(kWhole);
    const auto whole = go_all(options_of(info), rounds);
    const auto resumed = resume(options_of(info), halves, random() % 2 == 0);
    for (std::size_t node = 0; node < kNodes; ++node) {
      CHECK_MESSAGE(resumed[node].status.ok(), resumed[node].status.message());
      CHECK(resumed[node].model == whole[node].model);
    }
  }
}

TEST_CASE("nodes that resume from different rounds are told when they meet") {
  const auto options = options_of(algorithm_info("choco"));
  auto halves = stop_early(options, 1, 3);
  halves[2] = stop_early(options, 2, 6)[2];
  const auto resumed = resume(options, halves, true);
  for (const Outcome& outcome : resumed) {
    CAPTURE(outcome.status.message());
    CHECK(outcome.status.fault() == Fault::unexpected);
    CHECK(tells(outcome.status.message(), "node 2: it has"));
    CHECK(tells(outcome.status.message(), "rounds done"));
  }
}

TEST_CASE("a stop flag that is true before the first step ends the run without one") {
  const std::atomic<bool> stop{true};
  auto options = options_of(algorithm_info("dpsgd"));
  options.stop = &stop;
  Rounds rounds{};
  rounds.fill(5);
  for (const Outcome& outcome : go_all(options, rounds)) {
    CHECK_MESSAGE(outcome.status.ok(), outcome.status.message());
    CHECK(outcome.step.fault() == Fault::ended);
    CHECK(outcome.rounds == 0);
  }
}

TEST_CASE("privacy refuses rounds without data") {
  auto options = options_of(algorithm_info("dpsgd"), Join::zeros);
  options.rank = 0;
  options.store = make_memory_store();
  options.privacy = PrivacyOptions{.clip_norm = 1, .noise_multiplier = 1, .test_seed = 1};
  std::vector<float> model(kDimension);
  CHECK_THROWS_WITH_AS(Optimizer(options, model), doctest::Contains("join"), Error);
}

TEST_CASE("a node out of data that waits for others ends once it is interrupted") {
  const auto store = make_memory_store();
  std::atomic<bool> interrupted{false};
  const auto statuses = play(2, [&](Rank rank) -> Status {
    auto options = options_of(algorithm_info("dpsgd"), Join::zeros);
    options.nodes = 2;
    options.rank = rank;
    options.store = store;
    options.interrupted = [&] { return interrupted.load(); };
    std::vector<float> model(kDimension);
    Optimizer optimizer(options, model);
    Status status = optimizer.connect();
    if (rank == 0 && status.ok()) {
      // The other one neither steps nor finishes.
      status = store->get("wait for it", Deadline::after(50ms)).status();
      interrupted = true;
      while (!store->get("over", Deadline::after(50ms)).ok()) {
      }
      return {};
    }
    status = status.ok() ? optimizer.finish() : status;
    (void)store->set("over", {});
    return status;
  });
  CHECK(statuses[1].fault() == Fault::stopped);
  CHECK_MESSAGE(tells(statuses[1].message(), "stopped while waiting for node 0"),
                statuses[1].message());
}

TEST_CASE(
    "who waits for frames hears at once that another node gave up, though it is still there") {
  const auto store = make_memory_store();
  std::atomic<bool> over{false};
  const auto statuses = play(2, [&](Rank rank) -> Status {
    auto options = options_of(algorithm_info("dpsgd"));
    options.nodes = 2;
    options.rank = rank;
    options.store = store;
    std::vector<float> model(kDimension);
    Optimizer optimizer(options, model);
    Status status = optimizer.connect();
    if (rank == 0) {
      status = optimizer.give_up({Fault::io, "the disk is full"});
      while (!over) {
        std::this_thread::yield();  // its connection stays
      }
      return status;
    }
    const std::vector<float> gradient(kDimension, 1.0F);
    while (status.ok()) {
      status = optimizer.step(gradient);
    }
    over = true;
    return status;
  });
  CHECK_MESSAGE(tells(statuses[1].message(), "the disk is full"), statuses[1].message());
}

}  // namespace sotto::test::uneven_ends_test

// Settings that a call changes in mid-run: they are saved, and nodes that change them differently
// find out.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/optim/round_terms.h>
#include <sotto/trainers/optimizer.h>

#include "support/seed.h"
#include "trainers/nodes.h"

namespace sotto::test::changed_settings_test {

using namespace std::chrono_literals;

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kDimension = 24;

std::uint64_t draw_seed() {
  const std::uint64_t seed = test::drawn_seed();
  MESSAGE("seed ", seed);
  return seed;
}

void pull(Rank rank, Round round, std::span<const float> x, std::span<float> gradient) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    gradient[k] = x[k] - static_cast<float>(rank) + 0.1F * static_cast<float>((round + k) % 5);
  }
}

/// What a caller's own schedule says before a round; negative: nothing.
using Rates = std::function<double(Rank, Round)>;

struct Outcome {
  Status status;
  Round rounds = 0;
  std::vector<float> model = std::vector<float>(kDimension);
  std::vector<std::string> warnings;
  std::uint64_t differing = 0;
  double rate = 0;
  std::vector<std::byte> state;
};

/// Rounds `from` … `until` − 1 of one node, which saves in the end.
void go(OptimizerOptions options, Rank rank, Round until, const Rates& rates, Outcome& outcome) {
  options.rank = rank;
  outcome.model.assign(kDimension, 0);
  Optimizer optimizer(options, outcome.model);
  outcome.status = optimizer.connect();
  if (outcome.status.ok() && !outcome.state.empty()) {
    ByteReader in(outcome.state);
    outcome.status = optimizer.load(in);
  }
  std::vector<float> gradient(kDimension);
  while (outcome.status.ok() && optimizer.round() < until) {
    if (const double rate = rates(rank, optimizer.round()); rate >= 0) {
      optimizer.set_learning_rate(rate);
    }
    outcome.status = optimizer.begin_step();
    if (outcome.status.ok()) {
      pull(rank, optimizer.round(), optimizer.parameters(), gradient);
      outcome.status = optimizer.step(gradient);
    }
  }
  if (outcome.status.ok()) {
    outcome.status = optimizer.drain();
  }
  if (outcome.status.ok()) {
    ByteBuffer out;
    optimizer.save(out);
    outcome.state = std::move(out).take();
    outcome.status = optimizer.finish();
  }
  outcome.rounds = optimizer.round();
  outcome.warnings = optimizer.warnings();
  outcome.differing = optimizer.standing().counters.other_settings;
  outcome.rate = optimizer.learning_rate();
}

void go_all(OptimizerOptions options, Round until, const Rates& rates,
            std::vector<Outcome>& outcomes) {
  options.store = make_memory_store();
  outcomes.resize(static_cast<std::size_t>(options.nodes));
  (void)play(options.nodes, [&](Rank rank) -> Status {
    go(options, rank, until, rates, outcomes[static_cast<std::size_t>(rank)]);
    return {};
  });
}

OptimizerOptions options_of(const AlgorithmInfo& info) {
  auto options = options_for(kNodes, nullptr);
  options.lazy = info.eigenvalues_above > -1;
  choose(options, info);
  return options;
}

std::vector<std::string> news_of(const Outcome& outcome) {
  std::vector<std::string> news;
  std::ranges::copy_if(outcome.warnings, std::back_inserter(news),
                       [](const auto& text) { return text.find(" steps with ") != text.npos; });
  return news;
}

bool tells(const std::string& text, std::string_view word) { return text.find(word) != text.npos; }

}  // namespace

TEST_CASE(
    "a resumed run ends as an uninterrupted one, whatever rates were set, with any algorithm") {
  std::mt19937_64 random(draw_seed());
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    auto options = options_of(info);
    options.step_rule.momentum = options.step_rule.rule == "sgd" ? 0.8 : 0;
    const Round changes = 2 + random() % 5;
    const Round stop = changes + 1 + random() % 4;
    const double rate = 0.001 + 0.01 * static_cast<double>(random() % 9);
    const Rates rates = [&](Rank, Round round) { return round == changes ? rate : -1; };
    std::vector<Outcome> whole;
    go_all(options, 16, rates, whole);
    std::vector<Outcome> parts;
    go_all(options, stop, rates, parts);
    go_all(
        options, 16, [](Rank, Round) { return -1; }, parts);
    for (std::size_t node = 0; node < kNodes; ++node) {
      CHECK_MESSAGE(whole[node].status.ok(), whole[node].status.message());
      CHECK_MESSAGE(parts[node].status.ok(), parts[node].status.message());
      CHECK(parts[node].rate == rate);
      CHECK(parts[node].model == whole[node].model);
      CHECK(news_of(parts[node]).empty());
    }
  }
}

TEST_CASE("a changed rate is saved with any step rule, local steps, schedules and an outer rule") {
  std::mt19937_64 random(draw_seed());
  for (const std::string rule :
       {"sgd", "adam", "adamw", "lars", "lamb", "quasi-global", "sgd; 1d=adamw"}) {
    for (const bool local : {false, true}) {
      CAPTURE(rule);
      CAPTURE(local);
      auto options = options_for(kNodes, nullptr);
      options.algorithm = rule == "quasi-global" ? "dpsgd" : "allreduce";
      options.step_rule.rule = rule;
      options.step_rule.momentum = rule == "quasi-global" ? 0.9 : 0;
      options.step_rule.schedule = parse_schedule("step:3:0.5,warmup=4", 20);
      if (local) {
        options.communication_interval = 3;
        options.outer_step_rule = StepRuleOptions{.learning_rate = 0.7, .momentum = 0.5};
      }
      const double rate = 0.003 * static_cast<double>(1 + random() % 9);
      const Rates rates = [&](Rank, Round round) { return round == 3 ? rate : -1; };
      std::vector<Outcome> whole;
      go_all(options, 14, rates, whole);
      std::vector<Outcome> parts;
      go_all(options, 7, rates, parts);
      go_all(
          options, 14, [](Rank, Round) { return -1; }, parts);
      for (std::size_t node = 0; node < kNodes; ++node) {
        CHECK_MESSAGE(parts[node].status.ok(), parts[node].status.message());
        CHECK(parts[node].model == whole[node].model);
      }
    }
  }
}

TEST_CASE(
    "where models stay equal, a node with another rate is named before anybody steps with it") {
  std::mt19937_64 random(draw_seed());
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.agreement != SettingsAgreement::required) {
      continue;
    }
    CAPTURE(info.name);
    const Rank odd = static_cast<Rank>(random() % kNodes);
    const Round from = 1 + random() % 8;
    std::vector<Outcome> outcomes;
    go_all(
        options_of(info), 30,
        [&](Rank rank, Round round) { return rank == odd && round == from ? 0.00625 : -1; },
        outcomes);
    for (const Outcome& outcome : outcomes) {
      CAPTURE(outcome.status.message());
      CHECK(outcome.status.fault() == Fault::unexpected);
      // Between its exchanges nodes step alone, each with its own model.
      CHECK((info.has("limit") || outcome.rounds <= from + 2));
      CHECK(tells(outcome.status.message(), "0.00625"));
      CHECK(tells(outcome.status.message(), fmt::format("node {}", odd)));
      CHECK((info.has("limit") || outcome.model == outcomes.front().model));
    }
  }
}

TEST_CASE("where models are mixed, neighbours of a node with another rate are warned, and go on") {
  std::mt19937_64 random(draw_seed());
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.agreement == SettingsAgreement::required) {
      continue;
    }
    for (const std::uint32_t buckets : {1U, 3U}) {
      if (buckets > 1 && !info.takes_buckets()) {
        continue;
      }
      CAPTURE(info.name);
      CAPTURE(buckets);
      auto options = options_of(info);
      options.buckets = buckets;
      const Rank odd = static_cast<Rank>(random() % kNodes);
      std::vector<Outcome> outcomes;
      go_all(
          options, 40,
          [&](Rank rank, Round round) { return rank == odd && round == 2 ? 0.01 : -1; }, outcomes);
      std::size_t warned = 0;
      for (Rank rank = 0; rank < kNodes; ++rank) {
        const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
        CHECK_MESSAGE(outcome.status.ok(), outcome.status.message());
        for (const std::string& text : news_of(outcome)) {
          CAPTURE(text);
          CHECK(tells(text, "0.01"));
          CHECK((rank == odd || tells(text, fmt::format("node {} steps", odd))));
        }
        // One for each neighbour, however many rounds it lasts.
        CHECK(news_of(outcome).size() <= 2);
        CHECK((outcome.differing > 0) >= !news_of(outcome).empty());
        warned += rank != odd && !news_of(outcome).empty() ? 1U : 0U;
      }
      CHECK(warned >= 1);
    }
  }
}

TEST_CASE("a schedule that all nodes follow by calls gives neither faults nor warnings") {
  for (const AlgorithmInfo& info : algorithms()) {
    for (const bool delayed : {false, true}) {
      for (const Round interval : {Round{1}, Round{3}}) {
        if ((delayed && (!info.takes_delayed_gradients() || interval > 1)) ||
            (interval > 1 && !info.step_rules.only.empty())) {
          continue;
        }
        CAPTURE(info.name);
        CAPTURE(delayed);
        CAPTURE(interval);
        auto options = options_of(info);
        options.delayed_gradient = delayed;
        options.communication_interval = interval;
        options.buckets = info.takes_buckets() ? 3 : 1;
        std::vector<Outcome> outcomes;
        go_all(
            options, 24,
            [](Rank, Round round) { return 0.05 / (1 + 0.1 * static_cast<double>(round)); },
            outcomes);
        for (const Outcome& outcome : outcomes) {
          CHECK_MESSAGE(outcome.status.ok(), outcome.status.message());
          // AD-PSGD's nodes are rounds apart, and so are their rates.
          CHECK((news_of(outcome).empty() || info.agreement == SettingsAgreement::loose));
          CHECK((outcome.differing == 0 || info.agreement == SettingsAgreement::loose));
        }
      }
    }
  }
}

TEST_CASE("local steps at different rates end in equal models, with a warning") {
  auto options = options_for(kNodes, nullptr);
  options.algorithm = "allreduce";
  options.communication_interval = 2;
  std::vector<Outcome> outcomes;
  go_all(
      options, 12, [](Rank rank, Round round) { return rank == 1 && round == 4 ? 0.01 : -1; },
      outcomes);
  for (const Outcome& outcome : outcomes) {
    CHECK_MESSAGE(outcome.status.ok(), outcome.status.message());
    CHECK(outcome.model == outcomes.front().model);
  }
  CHECK(!news_of(outcomes[2]).empty());
}

TEST_CASE("a rate that differs again and again is told once a neighbour, and counted") {
  for (const std::string name : {"dpsgd", "adpsgd"}) {
    CAPTURE(name);
    auto options = options_of(algorithm_info(name));
    std::vector<Outcome> outcomes;
    go_all(
        options, 300,
        [](Rank rank, Round round) {
          const Round phase = round / 20 % 2;
          return rank == 1 ? (phase == 0 ? 0.01 : 0.05) : -1;
        },
        outcomes);
    for (const Outcome& outcome : outcomes) {
      CHECK_MESSAGE(outcome.status.ok(), outcome.status.message());
      CHECK(news_of(outcome).size() <= 2);
    }
    CHECK(outcomes[0].differing + outcomes[2].differing > 50);
  }
}

TEST_CASE("a rate set back to the agreed one is no difference any more") {
  auto options = options_for(kNodes, nullptr);
  options.algorithm = "allreduce";
  std::vector<Outcome> outcomes;
  // All leave it for two rounds; one then sets what the others only come back to.
  go_all(
      options, 12, [](Rank, Round round) { return round == 3   ? 0.02
                                                  : round == 5 ? 0.05
                                                               : -1; },
      outcomes);
  for (const Outcome& outcome : outcomes) {
    CHECK_MESSAGE(outcome.status.ok(), outcome.status.message());
    CHECK(outcome.rate == 0.05);
  }
}

TEST_CASE("over sockets a node with another rate is named as well") {
  for (const std::string transport : {"zmq", "gloo"}) {
    if (!available(transport)) {
      continue;
    }
    CAPTURE(transport);
    auto options = options_for(3, nullptr);
    options.transport = transport;
    options.algorithm = "allreduce";
    std::vector<Outcome> outcomes;
    go_all(
        options, 30, [](Rank rank, Round round) { return rank == 2 && round == 4 ? 0.002 : -1; },
        outcomes);
    for (const Outcome& outcome : outcomes) {
      CAPTURE(outcome.status.message());
      CHECK(outcome.status.fault() == Fault::unexpected);
      CHECK(tells(outcome.status.message(), "0.002"));
    }
  }
}

TEST_CASE("stamps of rates and of texts are told apart, and from bytes that are neither") {
  CHECK(is_stamp(kAsAgreed));
  CHECK(is_stamp(stamp_of_rate(0)));
  CHECK(stamp_of_rate(0) != kAsAgreed);
  CHECK(is_stamp(stamp_of_rate(1e300)));
  CHECK(stamp_of_rate(0.1) == stamp_of_rate(0.1 + 1e-12));
  CHECK(stamp_of_rate(0.1) != stamp_of_rate(0.1001));
  CHECK(is_stamp(stamp_of_settings("")));
  CHECK(stamp_of_settings("a") != stamp_of_settings("b"));
  for (const SettingsStamp bad : {1U, 0x3FFFFFFFU, 0xFF800000U, 0xFFFFFFFFU, 0xFFC00000U}) {
    CHECK_FALSE(is_stamp(bad));
  }
}

}  // namespace sotto::test::changed_settings_test

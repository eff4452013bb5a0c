// The planner's α–β model and what it concludes.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>  // what the library of the program leaves to its main

#include "plan_model.h"
#include "plan_verdict.h"

using namespace sotto;
using namespace sotto::cli;

namespace {

constexpr int kNodes = 8;
constexpr double kModel = 1.09e6;  ///< bytes

/// As RehearsalShape's ring: 2 (n − 1) exchanges of an n-th each.
PlannedJob all_reduce(double model_bytes) {
  PlannedRound round;
  for (int step = 0; step < 2 * (kNodes - 1); ++step) {
    PlannedExchange exchange;
    for (Rank rank = 0; rank < kNodes; ++rank) {
      exchange.push_back(
          {rank, (rank + 1) % kNodes, static_cast<std::uint64_t>(model_bytes / kNodes)});
    }
    round.after.push_back(exchange);
  }
  return {.steady = {round}};
}

/// Both neighbours on a ring; posted before the gradient, or behind it and hidden by the next.
PlannedJob gossip(double frame_bytes, bool before) {
  PlannedExchange exchange;
  for (Rank rank = 0; rank < kNodes; ++rank) {
    const auto bytes = static_cast<std::uint64_t>(frame_bytes);
    exchange.push_back({rank, (rank + kNodes - 1) % kNodes, bytes, true, bytes / sizeof(float)});
    exchange.push_back({rank, (rank + 1) % kNodes, bytes, false, bytes / sizeof(float)});
  }
  PlannedRound round;
  (before ? round.before : round.after).push_back(exchange);
  round.hides = !before;
  return {.steady = {round}};
}

Pace pace(double gradient_s, CodecCost codec = {}) {
  Pace made;
  made.nodes.assign(kNodes, {.compute = {.seconds = gradient_s}, .codec = codec});
  return made;
}

double seconds(const PlannedJob& job, const Platform& platform, const Pace& at) {
  return seconds_per_round(job, platform, at, 50);
}

PlannedRun finished(const std::string& words, bool compressed, std::optional<double> target) {
  Candidate candidate;
  candidate.words = words;
  candidate.compressed = compressed;
  Json result = {{"virtual_s", 10.0}, {"rounds", 10}, {"faults", Json::array()}};
  result["time_to_target_s"] = target ? Json(*target) : Json(nullptr);
  return {candidate, result};
}

}  // namespace

TEST_CASE("the model gives the known times of a round on three links") {
  struct Case {
    double bytes_per_s;
    SimTime latency;
    double all_reduce_s;
    double gossip_s;
    double compressed_s;
  };
  // 5 Mbit/s, 0.13 ms; 1.4 Gbit/s, 5 ms; 5 Mbit/s, 5 ms
  for (const Case& known :
       {Case{0.625e6, 130'000, 3.05, 3.49, 0.87}, Case{175e6, 5'000'000, 0.081, 0.0175, 0.0081},
        Case{0.625e6, 5'000'000, 3.12, 3.49, 0.88}}) {
    const Platform link = make_star(kNodes, known.bytes_per_s, known.latency);
    CAPTURE(known.bytes_per_s);
    CAPTURE(known.latency);
    // The table has three digits.
    CHECK(seconds(all_reduce(kModel), link, pace(0)) ==
          doctest::Approx(known.all_reduce_s).epsilon(0.006));
    CHECK(seconds(gossip(kModel, true), link, pace(0)) ==
          doctest::Approx(known.gossip_s).epsilon(0.006));
    CHECK(seconds(gossip(kModel / 4, false), link, pace(0)) ==
          doctest::Approx(known.compressed_s).epsilon(0.006));
  }
}

TEST_CASE("exchanges hide behind gradients where they may") {
  const Platform link = make_star(kNodes, 1e6, 10'000'000);
  const double exchange = 0.01 + 2 * 20'000 / 1e6;  // 50 ms
  for (const double gradient : {0.02, 0.2}) {
    Pace at = pace(gradient);
    const double hidden = std::max(gradient, exchange);
    CHECK(seconds(gossip(20'000, true), link, at) == doctest::Approx(hidden));
    // The last exchange has nothing to hide behind, and the first gradient nothing to hide.
    CHECK(seconds(gossip(20'000, false), link, at) ==
          doctest::Approx(hidden + std::min(gradient, exchange) / 50));
    at.overlap = false;
    CHECK(seconds(gossip(20'000, true), link, at) == doctest::Approx(gradient + exchange));
    CHECK(seconds(gossip(20'000, false), link, at) == doctest::Approx(gradient + exchange));
  }
}

TEST_CASE("a frame for several peers is encoded once, and each is decoded") {
  const Platform link = make_star(kNodes, 1e6, 10'000'000);
  Pace at = pace(0, {.encode_s_per_byte = 1e-6, .decode_s_per_byte = 2e-6});
  at.overlap = false;
  CHECK(seconds(gossip(20'000, true), link, at) ==
        doctest::Approx(0.02 + 0.01 + 2 * 0.02 + 2 * 0.04));
}

TEST_CASE("the slowest node and the thinnest link of the graph set the pace") {
  Pace at = pace(0.02);
  at.nodes[3].compute.slowdown = 7;
  CHECK(seconds(gossip(1'000, true), make_star(kNodes, 1e6, 1'000'000), at) ==
        doctest::Approx(0.14).epsilon(0.01));
  Platform link = make_star(kNodes, 1e6, 10'000'000);
  link.set_egress(5, {.bytes_per_s = 1e5, .latency = 5'000'000});
  CHECK(seconds(gossip(20'000, true), link, pace(0)) == doctest::Approx(0.01 + 0.4).epsilon(0.05));
}

TEST_CASE("a beginning is played before the steady rounds") {
  PlannedJob job = gossip(1'000, true);
  job.beginning = gossip(20'000, true).steady;
  job.beginning_rounds = 10;
  CHECK(bytes_per_round(job, kNodes, 50) == doctest::Approx((10 * 40'000 + 40 * 2'000) / 50.0));
  const Platform link = make_star(kNodes, 1e6, 10'000'000);
  CHECK(seconds(job, link, pace(0)) == doctest::Approx((10 * 0.05 + 40 * 0.012) / 50));
}

TEST_CASE("bits are recommended only where they are worth it") {
  const auto verdict = [](double all_reduce, double gossip_s, double choco) {
    return judge({finished("allreduce", false, all_reduce), finished("dpsgd ring", false, gossip_s),
                  finished("choco sign ring", true, choco)},
                 Goal::target);
  };
  const Verdict fewer = verdict(61, 22, 12);
  CHECK(fewer.compress);
  CHECK(fewer.winner == 2U);
  CHECK(*fewer.over_allreduce == doctest::Approx(61.0 / 12));
  CHECK(*fewer.over_best_uncompressed == doctest::Approx(22.0 / 12));
  CHECK(fewer.lines.front() ==
        "choco sign ring: target in 12 s, 5.08 × sooner than full-precision all-reduce (61 s), "
        "1.83 × sooner than the best uncompressed run (dpsgd ring, 22 s).");
  const Verdict slower = verdict(61, 22, 25);
  CHECK_FALSE(slower.compress);
  CHECK(slower.winner == 1U);
  CHECK(slower.lines.front().starts_with("Do not compress: dpsgd ring: target in 22 s, "));
  CHECK_FALSE(verdict(61, 22, 21.5).compress);
  CHECK(verdict(20, 22, 25).lines.front().starts_with("Do not compress: allreduce: "));
  const Verdict none = judge({finished("allreduce", false, std::nullopt)}, Goal::target);
  CHECK_FALSE(none.winner);
  const Verdict only =
      judge({finished("allreduce", false, std::nullopt), finished("choco sign ring", true, 12)},
            Goal::target);
  CHECK(only.compress);
  CHECK(only.lines.front().ends_with("Full-precision all-reduce does not reach the target."));
}

TEST_CASE("who ended early has no time of a round, and is named") {
  PlannedRun crashed = finished("allreduce", false, std::nullopt);
  crashed.result["faults"] = {{{"node", 2}, {"fault", "node 2, round 1: it crashed"}}};
  const PlannedRun whole = finished("dcd quant:8 ring", true, std::nullopt);
  CHECK_FALSE(time_of(crashed, Goal::epoch));
  CHECK_FALSE(crashed.error());
  CHECK(time_of(whole, Goal::epoch) == 1.0);
  const Verdict verdict = judge({crashed, whole}, Goal::epoch);
  CHECK(verdict.winner == 1U);
  CHECK(verdict.lines ==
        std::vector<std::string>{"dcd quant:8 ring: 1 s a round. Full-precision all-reduce does "
                                 "not come to its end.",
                                 "allreduce ended early: node 2, round 1: it crashed."});
  const Verdict none = judge({crashed}, Goal::epoch);
  CHECK_FALSE(none.winner);
  CHECK(none.lines.front() == "No run comes to its end.");
}

TEST_CASE("graphs nearly as quick as the quickest are told apart by how they mix") {
  const auto candidate = [](const std::string& method, const std::string& graph, double time,
                            double gap) {
    Candidate made;
    made.words = method + " " + graph;
    made.method = method;
    made.seconds_per_round = time;
    made.spectral_gap = gap;
    return made;
  };
  const auto ordered = in_order_of_promise(
      {candidate("dcd", "ring", 1, 0.1), candidate("dcd", "torus", 1.04, 0.4),
       candidate("dcd", "complete", 3, 1), candidate("choco", "ring", 0.5, 0.1)});
  std::vector<std::string> words;
  for (const Candidate& one : ordered) {
    words.push_back(one.words);
  }
  CHECK(words == std::vector<std::string>{"choco ring", "dcd torus", "dcd ring", "dcd complete"});
}

TEST_CASE("the command has the scenario's settings, and the run's own in their place") {
  Scenario scenario;
  scenario.nodes = 8;
  scenario.task_words = {"--task=text:my notes.txt", "--lr=0.1", "--rounds=30"};
  CHECK(train_command("dcd quant:4 ring lr=0.2", scenario) ==
        "sotto train --nodes=8 '--task=text:my notes.txt' --rounds=30 --algorithm=dcd "
        "--compressor=quant:4 --topology=ring --lr=0.2");
  scenario.task.common.seed = 7;
  CHECK(train_command("allreduce", scenario).ends_with(" --algorithm=allreduce --seed=7"));
}

// What `frontier` makes of runs: its entrants are runs of the program, its times are those of the
// trained runs, and its figures are right where they are known.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/study/simulation/scenario_runs.h>
#include <sotto/study/simulation/simulated_run.h>

#include "bench/learning/frontier/entrant.h"
#include "bench/learning/frontier/table.h"
#include "bench/learning/frontier/trial.h"
#include "support/scratch.h"

namespace sotto::test::frontier_test {

using namespace sotto::bench;

namespace {

const Work kDigits = {.name = "digits",
                      .task = "digits,train=128,test=16",
                      .model = "mlp:8",
                      .partition = "dirichlet:0.5",
                      .batch = 2};
const Network kSlow = {.name = "slow", .bandwidth = "3 Mbit/s", .latency = "17 ms"};
const Network kFast = {.name = "fast", .bandwidth = "1 Gbit/s", .latency = "1 ms"};

Conditions few_rounds() {
  Conditions conditions;
  conditions.nodes = 4;
  conditions.rounds = 24;
  return conditions;
}

/// A history with these losses after 10, 20, … rounds.
History curve(const std::vector<double>& losses, double bytes = 0) {
  History history;
  for (const double loss : losses) {
    HistoryPoint point;
    point.round = 10 * (history.size() + 1);
    point.loss = loss;
    point.bytes_per_node = bytes;
    history.push_back(point);
  }
  return history;
}

/// The time of the evaluation after so many rounds.
double at(const History& history, Round rounds) {
  return std::ranges::find(history, rounds, &HistoryPoint::round)->time_s;
}

/// A round takes `seconds`.
std::vector<double> steady(double seconds, std::size_t rounds) {
  std::vector<double> ends(rounds);
  for (std::size_t round = 0; round < rounds; ++round) {
    ends[round] = seconds * static_cast<double>(round + 1);
  }
  return ends;
}

}  // namespace

TEST_CASE("every entrant is a run of the program, whose losses no network changes") {
  const Conditions conditions = few_rounds();
  for (const Entrant& entrant : entrants(conditions.rounds)) {
    CAPTURE(entrant.name);
    REQUIRE(std::ranges::is_sorted(entrant.rates));
    CHECK(entrant.state_floats(conditions.nodes) > 0);
    const std::string words = entrant.at(entrant.rates.front());
    const auto trained_on = [&](const Network& network) {
      const auto scenario = scenario_of(kDigits, conditions, network, words, 7, false);
      return study::simulate_run(scenario, scenario.runs.front()).result;
    };
    const auto slow = trained_on(kSlow);
    const auto fast = trained_on(kFast);
    REQUIRE(slow.history.size() == fast.history.size());
    for (std::size_t k = 0; k < slow.history.size(); ++k) {
      CHECK(slow.history[k].loss == fast.history[k].loss);
    }
    // Rounds that are timed without gradients end when those of the trained run do, but for frames
    // whose length depends on the gradients: 1-bit Adam sends in full what has no variance yet.
    const auto times = round_times(kDigits, conditions, kSlow, words);
    REQUIRE(times.size() == conditions.rounds);
    CHECK(std::ranges::is_sorted(times));
    for (const HistoryPoint& point : timed(slow.history, times)) {
      CHECK(point.time_s == doctest::Approx(at(slow.history, point.round)).epsilon(0.04));
    }
  }
}

TEST_CASE("a loss between two evaluations lies on the line, and beyond them is the nearest") {
  const History history = timed(curve({3, 2, 1}), steady(0.5, 30));
  CHECK(history[0].time_s == 5);
  CHECK(history[2].time_s == 15);
  CHECK(loss_at(history, 7.5) == 2.5);
  CHECK(loss_at(history, 10) == 2);
  CHECK(loss_at(history, 1) == 3);
  CHECK(loss_at(history, 99) == 1);
  CHECK(std::isnan(loss_at({}, 1)));
}

TEST_CASE("the best rate has the least last loss, and no run that failed") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  CHECK(best_of({curve({1, 3}), curve({5, 2}), curve({4, 2.5})}) == 1);
  CHECK(best_of({curve({1, none}), curve({5, 2})}) == 1);
  CHECK(best_of({curve({5, 2}), {}}) == 0);
  CHECK(best_of({{}, {}, curve({9})}) == 2);
}

TEST_CASE("a search goes on where the best rate lies at an end of those that were tried") {
  CHECK(further_rate({0.001, 0.003, 0.01}, 1) == std::nullopt);
  CHECK(further_rate({0.001, 0.003, 0.01}, 0) == 0.0003);
  CHECK(further_rate({0.001, 0.003, 0.01}, 2) == 0.03);
  CHECK(further_rate({0.0001, 0.0003}, 0) == std::nullopt);
  CHECK(further_rate({0.3, 1}, 1) == std::nullopt);
  for (const Entrant& entrant : entrants(60)) {
    for (const double rate : entrant.rates) {
      CHECK(std::ranges::find(kRates, rate) != std::end(kRates));
    }
  }
}

TEST_CASE("figures of the table are those that can be worked out by hand") {
  // The second entrant learns half as much a round in a tenth of the bytes and of the time.
  const EntrantRuns dense{.entrant = {"dense", "allreduce step-rule=adamw", {0.1}, 2},
                          .rate = 0.1,
                          .searched = {curve({3, 2, 1}, 1000)},
                          .histories = {curve({3, 2, 1}, 1000), curve({3.5, 2.5, 1.5}, 1000)},
                          .round_times = {steady(1, 30)}};
  const EntrantRuns sparse{.entrant = {"sparse", "allreduce step-rule=adamw", {0.1, 0.2}, 2},
                           .rate = 0.2,
                           .searched = {{}, curve({3.5, 3, 2.5}, 100)},
                           .histories = {curve({3.5, 3, 2.5}, 100), curve({3.5, 3, 2.5}, 100)},
                           .round_times = {steady(0.1, 30)}};
  const Table table = tabulate({dense, sparse}, few_rounds(), 2.75);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.equal_seconds == std::vector<double>{3});
  CHECK(table.rows[0].loss.mean == 1.25);
  CHECK(table.rows[0].fewer == 1);
  CHECK(table.rows[1].fewer == 10);
  // After 3 s the dense one has done 3 of 30 rounds: none of its evaluations.
  CHECK(table.rows[0].networks[0].loss.mean == 3.25);
  CHECK(table.rows[1].networks[0].loss.mean == 2.5);
  // The dense seeds cross 2.75 after 12.5 and 17.5 s; the sparse ones after 2.5 s, held to the end.
  CHECK(table.rows[0].networks[0].to_target_s == doctest::Approx(15));
  CHECK(table.rows[1].networks[0].to_target_s == doctest::Approx(2.5));
  CHECK_FALSE(tabulate({dense, sparse}, few_rounds(), 0.5).rows[1].networks[0].to_target_s);
  CHECK(tabulate({dense, sparse}, few_rounds(), {}).target == doctest::Approx(1.3));
  const Json json = json_of(table, {dense, sparse}, {kFast});
  CHECK(json.at("rows").at(1).at("searched").at(0).at("loss").dump() == "null");
}

TEST_CASE("a run that failed is said to diverge, and the others keep their figures") {
  EntrantRuns failed{.entrant = {"failed", "allreduce", {0.1}, 0},
                     .rate = 0.1,
                     .searched = {{}},
                     .histories = {{}},
                     .round_times = {steady(1, 30)}};
  EntrantRuns well = failed;
  well.histories = {curve({3, 2, 1}, 10)};
  const Table table = tabulate({well, failed}, few_rounds(), 2);
  CHECK(table.rows[0].loss.mean == 1);
  CHECK(markdown(table, {kFast}).find("| failed | 0.1 | diverges |") != std::string::npos);
  CHECK(plots({well, failed}, table, {kFast}).find("NaN") == std::string::npos);
}

TEST_CASE("runs that are done come from the file, and a foreign file is refused") {
  const test::Scratch folder;
  const auto file = folder.path() / "trials.json";
  const Conditions conditions = few_rounds();
  const std::string words = "allreduce lr=0.05";
  bool stop = false;
  Trials first(file, [&stop] { return stop; });
  CHECK_FALSE(std::filesystem::exists(file));
  const auto trained = first.history(kDigits, conditions, words, 3);
  REQUIRE(trained.size() > 2);
  stop = true;  // nothing may be trained any more
  Trials second(file, [&stop] { return stop; });
  const auto& read = second.history(kDigits, conditions, words, 3);
  REQUIRE(read.size() == trained.size());
  for (std::size_t k = 0; k < read.size(); ++k) {
    CHECK(read[k].round == trained[k].round);
    CHECK(read[k].loss == trained[k].loss);
    CHECK(read[k].bytes_per_node == trained[k].bytes_per_node);
  }
  CHECK_THROWS_WITH((void)second.history(kDigits, conditions, words, 4), "interrupted");
  std::ofstream(file) << "[1, 2";
  CHECK_THROWS_AS(Trials(file, {}), Error);
}

}  // namespace sotto::test::frontier_test

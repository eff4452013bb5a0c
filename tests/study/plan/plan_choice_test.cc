// Which candidates the planner looks at first: by their pace, and by the rounds that it guesses.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/study/plan/plan_guess.h>
#include <sotto/study/plan/plan_screen.h>
#include <sotto/study/plan/plan_search.h>
#include <sotto/study/scenario/scenario.h>

namespace sotto::test::plan_choice_test {

using namespace sotto::study;

namespace {

/// Four nodes whose gradients take so long that no exchange behind them adds to a round.
Scenario slow_nodes(const std::string& network) {
  return parse_scenario("test",
                        "sotto-scenario = 1\nrun = [\"allreduce\"]\n"
                        "nodes = { count = 4, gradient = \"5 s\" }\n[network]\ntcp = {}\n" +
                            network +
                            "[task]\ntask = \"digits,train=640,test=64\"\nmodel = \"softmax\"\n"
                            "rounds = 16\nlr = 0.05\n");
}

Candidate candidate_of(const std::string& method, const std::string& graph, Round interval = 1) {
  Candidate made;
  made.run.name = method + " " + graph;
  made.method = method;
  made.graph = graph;
  made.interval = interval;
  made.spectral_gap = 0.5;
  return made;
}

/// Runs whose rounds are a product of what method, graph and interval each contribute.
struct Truth {
  explicit Truth(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> log_factor(-0.5, 0.5);
    for (const char* method : {"a", "b", "c", "d"}) {
      const double of_method = log_factor(random);
      for (const char* graph : {"ring", "torus", "complete"}) {
        for (const Round interval : {Round{1}, Round{4}}) {
          all.push_back(candidate_of(method, graph, interval));
          logs[graph].resize(2, std::nan(""));
          double& of_graph = logs[graph][interval == 1 ? 0 : 1];
          of_graph = std::isnan(of_graph) ? log_factor(random) : of_graph;
          rounds.push_back(std::exp(6 + of_method + of_graph));
        }
      }
    }
  }
  std::vector<Candidate> all;
  std::vector<double> rounds;
  std::map<std::string, std::vector<double>> logs;
};

/// What is guessed of all, after learning those of `order`.
std::vector<double> guesses(const Truth& truth, const std::vector<std::size_t>& order,
                            double factor = 1) {
  RoundsGuess guess;
  for (const std::size_t i : order) {
    guess.learn(truth.all[i], factor * truth.rounds[i]);
  }
  std::vector<double> of;
  for (const Candidate& candidate : truth.all) {
    of.push_back(guess.of(candidate));
  }
  return of;
}

std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) {
    order[i] = i;
  }
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

}  // namespace

TEST_CASE("a guess scales with what it has learned, and the order of learning does not count") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Truth truth(seed);
    auto order = shuffled(truth.all.size(), seed);
    order.resize(order.size() / 2);
    const auto once = guesses(truth, order);
    const auto tripled = guesses(truth, order, 3);
    std::reverse(order.begin(), order.end());
    const auto backwards = guesses(truth, order);
    for (std::size_t i = 0; i < once.size(); ++i) {
      CHECK(tripled[i] == doctest::Approx(3 * once[i]).epsilon(1e-9));
      CHECK(backwards[i] == doctest::Approx(once[i]).epsilon(0.01));
    }
  }
}

TEST_CASE("rounds that were never simulated are guessed from those with equal parts") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Truth truth(seed);
    auto order = shuffled(truth.all.size(), seed);
    const std::size_t left_out = order.back();
    order.pop_back();
    // Graph and interval act together here, which a sum has not: by less than their whole range.
    const double error = std::log(guesses(truth, order)[left_out] / truth.rounds[left_out]);
    CHECK(std::abs(error) < 1.0);
  }
  // Where method and graph alone count, the sum is the truth, but for the pull to nothing.
  RoundsGuess guess;
  const std::map<std::string, double> method = {{"a", 1}, {"b", 2}, {"c", 4}};
  const std::map<std::string, double> graph = {{"ring", 3}, {"torus", 1.5}, {"complete", 1}};
  for (const auto& [m, by_method] : method) {
    for (const auto& [g, by_graph] : graph) {
      if (m != "c" || g != "ring") {
        guess.learn(candidate_of(m, g), 100 * by_method * by_graph);
      }
    }
  }
  CHECK(guess.of(candidate_of("c", "ring")) == doctest::Approx(1200).epsilon(0.3));
  CHECK(guess.of(candidate_of("a", "complete")) == doctest::Approx(100).epsilon(0.3));
  CHECK(guess.of(candidate_of("c", "ring")) > guess.of(candidate_of("b", "ring")));
}

TEST_CASE("before anything was simulated, what is simpler is tried first") {
  const RoundsGuess guess;
  const Candidate plain = candidate_of("allreduce", "");
  Candidate compressed = plain;
  compressed.compressed = true;
  Candidate seldom = plain;
  seldom.interval = 8;
  Candidate slow_to_mix = plain;
  slow_to_mix.spectral_gap = 0.01;
  for (const Candidate* other : {&compressed, &seldom, &slow_to_mix}) {
    CHECK(guess.of(plain) < guess.of(*other));
    CHECK(guess.of(*other) < 1.05 * guess.of(plain));
  }
}

TEST_CASE("every method comes with its quickest graph before any comes with its second") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::vector<Candidate> candidates;
    std::map<std::string, double> quickest;
    for (const char* method : {"a", "b", "c"}) {
      const auto graphs = 1 + random() % 6;
      for (std::uint64_t i = 0; i < graphs; ++i) {
        Candidate made = candidate_of(method, std::to_string(i));
        made.predicted_seconds_per_round = 1 + uniform(random);
        made.spectral_gap = uniform(random);
        const auto [best, fresh] = quickest.emplace(method, made.predicted_seconds_per_round);
        best->second = std::min(best->second, made.predicted_seconds_per_round);
        candidates.push_back(std::move(made));
      }
    }
    std::set<std::string> names;
    for (const Candidate& one : candidates) {
      names.insert(one.run.name);
    }
    const auto ordered = in_order_of_promise(
        candidates, [](const Candidate& one) { return one.predicted_seconds_per_round; });
    REQUIRE(ordered.size() == candidates.size());
    std::set<std::string> first;
    for (std::size_t i = 0; i < ordered.size(); ++i) {
      names.erase(ordered[i].run.name);
      if (i < quickest.size()) {
        first.insert(ordered[i].method);
        CHECK(ordered[i].predicted_seconds_per_round <= 1.05 * quickest[ordered[i].method]);
        CHECK((i == 0 || ordered[i - 1].predicted_seconds_per_round <=
                             ordered[i].predicted_seconds_per_round));
      }
    }
    CHECK(first.size() == quickest.size());
    CHECK(names.empty());
  }
}

TEST_CASE("no way to step is left out for what the model says of links whose queues overflow") {
  const auto screened = [](const Scenario& scenario, const std::string& graph) {
    CodecMeter codec("none", scenario);
    auto found = screen_space(
        {.lists = {.algorithms = {"dpsgd"}, .compressors = {"none"}, .topologies = {graph}},
         .goal = Goal::target,
         .rounds = 100},
        scenario, codec, {});
    REQUIRE(found.ok());
    std::erase_if(found->candidates, [](const Candidate& one) {
      return one.algorithm != "dpsgd" || !one.step_rule.empty() || !one.outer_rule.empty();
    });
    return std::move(found->candidates);
  };
  const auto rarer = [](const Candidate& one) { return one.interval > 1; };
  const std::string link = "link = { bandwidth = \"20 Mbit/s\", latency = \"20 ms\"";
  // The exchange hides behind the gradient: rarer ones cannot make a round shorter by a tenth.
  const auto without = screened(slow_nodes(link + " }\n"), "ring");
  REQUIRE(without.size() == 1);
  CHECK_FALSE(rarer(without.front()));
  CHECK_FALSE(without.front().may_take_longer);
  const auto with = screened(slow_nodes(link + ", queue = \"64 kB\" }\n"), "ring");
  CHECK(std::ranges::any_of(with, rarer));
  for (const Candidate& one : with) {
    CHECK(one.may_take_longer);
  }
  CHECK(with[0].predicted_seconds_per_round == without[0].predicted_seconds_per_round);
  // A ring does not use the link between nodes 0 and 2; all to all does.
  const Scenario across = slow_nodes(link + " }\nbetween = [{ from = \"0\", to = \"2\", " + link +
                                     ", queue = \"64 kB\" } }]\n");
  CHECK_FALSE(screened(across, "ring").front().may_take_longer);
  CHECK(screened(across, "complete").front().may_take_longer);
}

TEST_CASE("a bound excludes nothing that it does not bound") {
  Candidate bound = candidate_of("a", "ring");
  Candidate told = candidate_of("b", "ring");
  bound.predicted_seconds_per_round = 1;
  bound.may_take_longer = true;
  told.predicted_seconds_per_round = 2;
  CHECK(told.may_be_shorter_than(bound));
  CHECK(bound.may_be_shorter_than(told));
  bound.predicted_seconds_per_round = 2;
  CHECK_FALSE(bound.may_be_shorter_than(told));
  told.predicted_seconds_per_round = 1.9;
  CHECK_FALSE(bound.may_be_shorter_than(told));
  CHECK_FALSE(told.may_be_shorter_than(told));
}

TEST_CASE("plans say where the model has lower bounds, and look at more of them") {
  const auto simulated = [](const std::string& queue, std::string& said) {
    const Scenario scenario =
        slow_nodes("link = { bandwidth = \"20 Mbit/s\", latency = \"20 ms\"" + queue + " }\n");
    PlanSearch search({.lists = {.algorithms = {"dpsgd"},
                                 .compressors = {},
                                 .topologies = {"ring", "complete", "star", "line"}},
                       .codec = "none",
                       .budget = 4,
                       .tell = [&](const SettingText& line) { said += line.text() + "\n"; }},
                      scenario);
    REQUIRE(search.find().ok());
    return std::ranges::count_if(search.candidates(),
                                 [&](const Candidate& one) { return search.simulated(one.run); });
  };
  std::string of_queues;
  std::string of_none;
  // The baseline and three; of bounds alone as many as the budget has.
  CHECK(simulated("", of_none) == 4);
  CHECK(simulated(", queue = \"64 kB\"", of_queues) == 5);
  CHECK(of_none.find("lower bounds") == std::string::npos);
  CHECK(of_queues.find("its times are lower bounds, for which no way to step is left out") !=
        std::string::npos);
}

}  // namespace sotto::test::plan_choice_test

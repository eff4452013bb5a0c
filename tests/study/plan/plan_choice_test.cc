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

namespace sotto::test::plan_choice_test {

using namespace sotto::study;

namespace {

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

}  // namespace sotto::test::plan_choice_test

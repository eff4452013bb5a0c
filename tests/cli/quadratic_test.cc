// Whole runs against the algorithms written out once more, here, in double precision.
#include <cmath>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/program.h"

namespace sotto::test::quadratic_test {

namespace {

constexpr std::size_t kNodes = 5;
constexpr std::size_t kDimension = 12;
constexpr int kRounds = 60;
constexpr double kLr = 0.1;
constexpr double kEta = 0.3;
constexpr double kThird = 1.0 / 3;

using Vector = std::vector<double>;
using Models = std::vector<Vector>;

struct Problem {
  Vector start = Vector(kDimension);
  Models h = Models(kNodes, Vector(kDimension));
  Models c = Models(kNodes, Vector(kDimension));

  Problem() {
    for (std::size_t k = 0; k < kDimension; ++k) {
      start[k] = std::sin(static_cast<double>(k));
      for (std::size_t i = 0; i < kNodes; ++i) {
        const auto number = static_cast<double>(i * kDimension + k);
        h[i][k] = 0.55 + 0.45 * std::sin(1.7 * number);
        c[i][k] = 1 + std::cos(2.3 * number);
      }
    }
  }

  std::string file() const {
    nlohmann::json nodes = nlohmann::json::array();
    for (std::size_t i = 0; i < kNodes; ++i) {
      nodes.push_back({{"h", h[i]}, {"c", c[i]}});
    }
    return nlohmann::json{{"start", start}, {"nodes", nodes}}.dump();
  }

  Models starts() const { return Models(kNodes, start); }

  /// x − γ ∇f_i(x)
  Vector stepped(std::size_t i, const Vector& x) const {
    Vector next = x;
    for (std::size_t k = 0; k < kDimension; ++k) {
      next[k] -= kLr * h[i][k] * (x[k] - c[i][k]);
    }
    return next;
  }
};

/// Σ_j W_ij y_j on the ring with weights ⅓.
Vector mixed(const Models& y, std::size_t i) {
  Vector sum(kDimension);
  for (const std::size_t j : {i, (i + 1) % kNodes, (i + kNodes - 1) % kNodes}) {
    for (std::size_t k = 0; k < kDimension; ++k) {
      sum[k] += kThird * y[j][k];
    }
  }
  return sum;
}

Vector plus(Vector x, double a, const Vector& y) {
  for (std::size_t k = 0; k < kDimension; ++k) {
    x[k] += a * y[k];
  }
  return x;
}

/// x_i ← Σ_j W_ij x_j − γ g_i
Models dpsgd(const Problem& problem) {
  Models x = problem.starts();
  for (int round = 0; round < kRounds; ++round) {
    Models next;
    for (std::size_t i = 0; i < kNodes; ++i) {
      next.push_back(plus(plus(mixed(x, i), -1, x[i]), 1, problem.stepped(i, x[i])));
    }
    x = next;
  }
  return x;
}

/// The three elements of largest magnitude.
Vector top_3(const Vector& v) {
  std::vector<std::size_t> order(v.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return std::abs(v[a]) > std::abs(v[b]); });
  Vector kept(v.size());
  for (std::size_t k = 0; k < 3; ++k) {
    kept[order[k]] = v[order[k]];
  }
  return kept;
}

/// q_i = C(x_i^½ − x̂_i); x̂_i += q_i; x_i ← x_i^½ + η Σ_j W_ij (x̂_j − x̂_i)
Models choco(const Problem& problem) {
  Models x = problem.starts();
  Models known(kNodes, Vector(kDimension));
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kNodes; ++i) {
      x[i] = problem.stepped(i, x[i]);
      known[i] = plus(known[i], 1, top_3(plus(x[i], -1, known[i])));
    }
    for (std::size_t i = 0; i < kNodes; ++i) {
      x[i] = plus(x[i], kEta, plus(mixed(known, i), -1, known[i]));
    }
  }
  return x;
}

/// Signs times the mean magnitude.
Vector sign(const Vector& v) {
  double mean = 0;
  for (const double value : v) {
    mean += std::abs(value) / static_cast<double>(v.size());
  }
  Vector signs;
  for (const double value : v) {
    signs.push_back(value < 0 ? -mean : mean);
  }
  return signs;
}

/// v_i = x_i^½ + δ_i; δ_i ← v_i − C(v_i); x_i ← x_i^½ + η Σ_j (W_ij − 1[i = j]) C(v_j)
Models deepsqueeze(const Problem& problem) {
  Models x = problem.starts();
  Models error(kNodes, Vector(kDimension));
  for (int round = 0; round < kRounds; ++round) {
    Models sent;
    for (std::size_t i = 0; i < kNodes; ++i) {
      x[i] = problem.stepped(i, x[i]);
      const Vector v = plus(x[i], 1, error[i]);
      sent.push_back(sign(v));
      error[i] = plus(v, -1, sent[i]);
    }
    for (std::size_t i = 0; i < kNodes; ++i) {
      x[i] = plus(x[i], kEta, plus(mixed(sent, i), -1, sent[i]));
    }
  }
  return x;
}

Models run_program(const Problem& problem, const Arguments& more) {
  const Scratch scratch;
  const auto dump = (scratch.path() / "models.csv").string();
  Arguments words = {"train",
                     "--task",
                     "quadratic:" + scratch.write("problem.json", problem.file()).string(),
                     "--rounds",
                     std::to_string(kRounds),
                     "--lr",
                     std::to_string(kLr),
                     "--quiet",
                     "--dump-parameters",
                     dump};
  words.insert(words.end(), more.begin(), more.end());
  const auto ended = run(words);
  CAPTURE(ended.err);
  REQUIRE(ended.status == 0);
  Models models;
  std::ifstream file(dump);
  for (std::string line; std::getline(file, line);) {
    std::istringstream row(line);
    models.emplace_back();
    for (std::string cell; std::getline(row, cell, ',');) {
      models.back().push_back(std::stod(cell));
    }
  }
  REQUIRE(models.size() == kNodes);
  return models;
}

void check_close(const Models& found, const Models& expected) {
  for (std::size_t i = 0; i < kNodes; ++i) {
    REQUIRE(found[i].size() == kDimension);
    for (std::size_t k = 0; k < kDimension; ++k) {
      CAPTURE(i);
      CAPTURE(k);
      CHECK(std::abs(found[i][k] - expected[i][k]) < 2e-5);
    }
  }
}

}  // namespace

TEST_CASE("dpsgd on a quadratic equals the same arithmetic in double") {
  const Problem problem;
  check_close(run_program(problem, {"--algorithm", "dpsgd"}), dpsgd(problem));
}

TEST_CASE("choco with top-k on a quadratic equals the same arithmetic in double") {
  const Problem problem;
  check_close(run_program(problem, {"--algorithm", "choco", "--compressor", "topk:0.25",
                                    "--consensus-stepsize", "0.3"}),
              choco(problem));
}

TEST_CASE("deepsqueeze with signs on a quadratic equals the same arithmetic in double") {
  const Problem problem;
  check_close(run_program(problem, {"--algorithm", "deepsqueeze", "--compressor", "sign",
                                    "--consensus-stepsize", "0.3"}),
              deepsqueeze(problem));
}

}  // namespace sotto::test::quadratic_test

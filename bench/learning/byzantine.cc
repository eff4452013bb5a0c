// Rules against attacks: a ring of 5 honest and 11 Byzantine nodes on MNIST, as tables of the
// accuracy of the honest nodes' mean model.
//   SOTTO_DATA=DIR build/bench/byzantine [--seeds N] [--rounds R] [--rules A,B,…] [--json FILE]
// DIR has mnist/. The setting is that of the public code of arXiv:2202.01545 (docs/robust.md).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sotto/base/error.h>
#include <sotto/optim/algorithms/robust_gossip.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/robust/attack.h>
#include <sotto/sim/lockstep.h>
#include <sotto/trainers/model_sum.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "bench/support/command_line.h"
#include "bench/support/json_file.h"

namespace {

using namespace sotto;

constexpr int kHonest = 5;
constexpr int kNodes = 16;

struct ByzantineSettings {
  std::filesystem::path data;
  std::string model = "mlp:64";
  std::string json;
  std::vector<std::string> rules = {
      "mean",           "clipped:0.01", "clipped:0.1",      "clipped:1", "clipped:second-largest",
      "trimmed-mean:2", "median",       "geometric-median", "krum:2",    "clipped:auto:1",
      "clipped:auto"};
  std::vector<std::string> attacks = {"none", "alie:10", "ipm:0.1", "dissensus:1.5", "near-ipm"};
  std::vector<std::string> partitions = {"iid", "label"};
  Round rounds = 900;
  std::uint64_t seeds = 3;
};

/// Honest nodes 0 … 4 in a ring; i + 5 and i + 10 are the attackers of i, and 15 is a third one of
/// node 0. Metropolis weights, then W ← (W + (1 − m) I) / (2 − m), m the least own weight of an
/// honest node. Of the smaller graph without attackers the own weights are larger.
std::shared_ptr<const Topology> malicious_ring(int nodes) {
  std::vector<std::pair<Rank, Rank>> pairs;
  for (Rank i = 0; i < kHonest; ++i) {
    pairs.emplace_back(i, (i + 1) % kHonest);
    pairs.emplace_back(i, i + kHonest);
    pairs.emplace_back(i, i + 2 * kHonest);
  }
  pairs.emplace_back(0, 3 * kHonest);
  const auto degree = [](Rank node) { return node == 0 ? 5 : node < kHonest ? 4 : 1; };
  constexpr double kLeastSelf = 1.0 / 6;
  std::vector<WeightedEdge> edges;
  for (const auto& [a, b] : pairs) {
    if (b >= nodes) {
      continue;
    }
    const double weight = 1.0 / (1 + std::max(degree(a), degree(b))) / (2 - kLeastSelf);
    edges.push_back({a, b, weight});
    edges.push_back({b, a, weight});
  }
  return std::make_shared<const Topology>("malicious ring", nodes,
                                          std::vector<std::vector<WeightedEdge>>{edges});
}

struct Cell {
  std::string partition;
  std::string rule;
  std::string attack;
  std::vector<double> accuracies =
      {};  ///< the accuracy of each seed; NaN: the models left float32's range
};

class Trial {
 public:
  Trial(const TaskFactory& tasks, const Cell& cell, std::uint64_t seed) {
    for (Rank rank = 0; rank < kHonest; ++rank) {
      tasks_.push_back(tasks.make(rank));
    }
    std::vector<float> start(tasks_[0]->dimension());
    tasks_[0]->initialize(start, seed);
    const int nodes = cell.attack == "none" ? kHonest : kNodes;
    x_.assign(static_cast<std::size_t>(nodes), start);
    const auto topology = malicious_ring(nodes);
    const auto adversary = nodes == kHonest ? nullptr : adversary_of(cell.attack);
    for (Rank rank = 0; rank < nodes; ++rank) {
      AlgorithmSetup setup;
      setup.rank = rank;
      setup.nodes = nodes;
      setup.parameters = x_[static_cast<std::size_t>(rank)];
      setup.topology = topology;
      setup.step_rule = make_step_rule({.learning_rate = 0.01, .momentum = 0.9});
      setup.adversary = adversary;
      setup.seed = seed;
      driver_.add(make_algorithm("robust:" + cell.rule, std::move(setup)));
    }
  }

  /// The accuracy of the honest nodes' mean model in the end.
  double accuracy(Round rounds) {
    const Status status = driver_.run(rounds, [this](Rank rank, Round round, auto x, auto g) {
      if (rank < kHonest) {
        (void)tasks_[static_cast<std::size_t>(rank)]->loss_and_gradient(round, x, g);
      } else {
        std::fill(g.begin(), g.end(), 0.0F);
      }
    });
    if (!status.ok()) {
      return std::nan("");
    }
    ModelSum sum;
    for (std::size_t rank = 0; rank < kHonest; ++rank) {
      sum.add(x_[rank]);
    }
    return tasks_[0]->evaluate(sum.mean()).accuracy;
  }

 private:
  const RobustGossip& honest(Rank rank) const {
    return dynamic_cast<const RobustGossip&>(driver_.node(static_cast<std::size_t>(rank)));
  }

  std::shared_ptr<const Adversary> adversary_of(const std::string& attack) {
    auto adversary = std::make_shared<Adversary>();
    adversary->nodes.resize(kNodes - kHonest);
    std::iota(adversary->nodes.begin(), adversary->nodes.end(), Rank{kHonest});
    adversary->attack = parse_attack(attack);
    // In lock step the honest nodes, of lower rank, have posted this round's models by then.
    adversary->posted = [this](Rank rank) { return honest(rank).half(); };
    adversary->step = [this](Rank rank) { return honest(rank).step(); };
    return adversary;
  }

  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<std::vector<float>> x_;
  LockstepDriver driver_;
};

void add_options(CLI::App& app, ByzantineSettings& settings) {
  app.add_option("--data", settings.data, "The folder of the data")
      ->envname("SOTTO_DATA")
      ->required();
  app.add_option("--model", settings.model, "As `sotto train --model`")->capture_default_str();
  app.add_option("--rules", settings.rules, "As `sotto train --rule`")->delimiter(',');
  app.add_option("--attacks", settings.attacks, "none, or as `sotto train --attack`")
      ->delimiter(',');
  app.add_option("--partitions", settings.partitions, "iid, label or dirichlet:ALPHA")
      ->delimiter(',');
  app.add_option("--rounds", settings.rounds, "Batches of 32 a node")->capture_default_str();
  app.add_option("--seeds", settings.seeds, "Repetitions")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--json", settings.json, "Write all figures to this file");
}

/// "94.1", of three seeds "94.1 (93.8–94.4)"
std::string text_of(const Cell& cell) {
  const auto& values = cell.accuracies;
  if (std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); })) {
    return "diverges";
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return values.size() == 1
             ? fmt::format("{:.1f}", 100 * mean)
             : fmt::format("{:.1f} ({:.1f}–{:.1f})", 100 * mean, 100 * *low, 100 * *high);
}

std::vector<Cell> run(const ByzantineSettings& settings) {
  const auto data = load_task(fmt::format("mnist:{}", (settings.data / "mnist").string()));
  std::vector<Cell> cells;
  for (const std::string& partition : settings.partitions) {
    fmt::print("\n| {} |", partition);
    for (const std::string& attack : settings.attacks) {
      fmt::print(" {} |", attack);
    }
    fmt::print("\n| --- |");
    for (std::size_t k = 0; k < settings.attacks.size(); ++k) {
      fmt::print(" ---: |");
    }
    fmt::print("\n");
    for (const std::string& rule : settings.rules) {
      fmt::print("| `{}` |", rule);
      for (const std::string& attack : settings.attacks) {
        Cell cell{.partition = partition, .rule = rule, .attack = attack};
        for (std::uint64_t seed = 0; seed < settings.seeds; ++seed) {
          const TaskFactory tasks(
              data,
              {.model = settings.model, .partition = partition, .nodes = kHonest, .seed = seed});
          cell.accuracies.push_back(Trial(tasks, cell, seed).accuracy(settings.rounds));
        }
        fmt::print(" {} |", text_of(cell));
        std::fflush(stdout);
        cells.push_back(std::move(cell));
      }
      fmt::print("\n");
    }
  }
  return cells;
}

Json to_json(const std::vector<Cell>& cells) {
  Json all = Json::array();
  for (const Cell& cell : cells) {
    all.push_back({{"partition", cell.partition},
                   {"rule", cell.rule},
                   {"attack", cell.attack},
                   {"accuracies", cell.accuracies}});
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Robust rules against attacks, in lock step", "byzantine");
  ByzantineSettings settings;
  add_options(app, settings);
  return bench::run_main(app, argc, argv, [&] {
    const bench::JsonFile file(settings.json);
    file.write(to_json(run(settings)));
    return console::kDone;
  });
}

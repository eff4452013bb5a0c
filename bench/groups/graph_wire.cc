// What a graph in parts costs on a slow network, and what it learns: the sign of ratings that
// nobody has shown it, in AUC against bytes and virtual time, by what is sent of boundary rows.
//
// Four sites at a switch, 1 Mbit/s out and in, 50 ms from site to site; computation takes no time.
// People of a graph of ratings are dealt to the sites in pieces of a breadth-first walk. A network
// of two graph convolutions, 7-32-16, is trained by Adam at rate 0.01; its weights' gradients are
// averaged by all-reduce. Its AUC is that of the weights on the whole graph. Means of 3 seeds,
// which draw the test's ratings and the weights.
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <sotto/base/philox.h>
#include <sotto/groups/programs/graph_network.h>
#include <sotto/sim/simulator.h>
#include <sotto/trainers/data/ratings.h>

#include "bench/support/command_line.h"

namespace {

using sotto::Ratings;
using sotto::RatingsSplit;

constexpr int kSites = 4;
constexpr sotto::Round kRounds = 200;
constexpr sotto::Round kEvery = 5;  // rounds from evaluation to evaluation
constexpr int kSeeds = 3;

/// A way to treat boundary rows.
struct Way {
  const char* name;
  const char* compressor;
  const char* gradient_compressor;
  sotto::HaloCacheOptions cache;
  bool cut = false;    ///< edges between sites are left out
  bool keyed = false;  ///< rows go as changes of what was sent last
};

const std::vector<Way> kWays = {
    {"exact", "none", "none", {.share = 0, .most_age = 0}},
    {"8 bits", "quant:8", "quant:8", {.share = 0, .most_age = 0}},
    {"cache 0.5, 8 rounds", "none", "none", {.share = 0.5, .most_age = 8}},
    {"cache 0.9, 8 rounds", "none", "none", {.share = 0.9, .most_age = 8}},
    {"cache 0.9, 50 rounds", "none", "none", {.share = 0.9, .most_age = 50}},
    {"cache 0.5, 8 rounds, 8 bits", "quant:8", "quant:8", {.share = 0.5, .most_age = 8}},
    {"cache 0.9, 50 rounds, 8 bits", "quant:8", "quant:8", {.share = 0.9, .most_age = 50}},
    {"changes in 8 bits", "quant:8", "quant:8", {.share = 0, .most_age = 0}, false, true},
    {"changes in 4 bits", "quant:4", "quant:8", {.share = 0, .most_age = 0}, false, true},
    {"changes in 2 bits", "quant:2", "quant:8", {.share = 0, .most_age = 0}, false, true},
    {"cache 0.5, changes in 4 bits",
     "quant:4",
     "quant:8",
     {.share = 0.5, .most_age = 8},
     false,
     true},
    {"no cut edges", "none", "none", {.share = 0, .most_age = 0}, true},
};

sotto::GraphNetworkOptions network_of(const Way& way) {
  return {.features = sotto::kRatingFeatures,
          .hidden = 32,
          .embedding = 16,
          .compressor = way.compressor,
          .gradient_compressor = way.gradient_compressor,
          .cache = way.cache,
          .keyed = way.keyed};
}

/// The AUC of weights on the whole graph.
class Judge {
 public:
  explicit Judge(const RatingsSplit& split)
      : test_(split.test), graph_(split.train), weights_(network_of(kWays[0]).parameters()) {
    std::ranges::fill(graph_.owner, 0);
    node_ = std::make_unique<sotto::ProgramAlgorithm>(
        sotto::ProgramSetup{.rank = 0, .nodes = 1, .grid = "site=1", .parameters = weights_},
        [this](const sotto::ProgramNode& node) {
          auto made = std::make_unique<sotto::GraphNetwork>(node, graph_, network_of(kWays[0]));
          network_ = made.get();
          return made;
        });
  }

  double operator()(std::span<const float> weights) {
    std::ranges::copy(weights, weights_.begin());
    node_->begin_round();
    if (const auto status = node_->take_gradient(weights_); !status.ok()) {
      throw std::runtime_error(status.message());
    }
    constexpr std::size_t kRow = 16;
    std::vector<double> scores;
    scores.reserve(test_.size());
    for (const sotto::GraphLink& link : test_) {
      scores.push_back(network_->score(network_->embeddings().subspan(link.from * kRow, kRow),
                                       network_->embeddings().subspan(link.to * kRow, kRow)));
    }
    return sotto::area_under_curve(test_, scores);
  }

 private:
  const std::vector<sotto::GraphLink>& test_;
  sotto::RatedGraph graph_;
  std::vector<float> weights_;
  sotto::GraphNetwork* network_ = nullptr;
  std::unique_ptr<sotto::ProgramAlgorithm> node_;
};

/// What came of a way, or the mean over the seeds.
struct Outcome {
  double megabytes = 0;  ///< sent a site
  double kept = 0;       ///< share of boundary rows that were left out
  double seconds = 0;
  double auc = 0;                                    ///< at the end
  std::vector<std::pair<double, double>> auc_after;  ///< seconds and AUC
};

std::vector<float> first_weights(const sotto::GraphNetworkOptions& options, std::uint64_t seed) {
  sotto::RandomStream draws({.seed = seed, .rank = 1});
  std::vector<float> weights(options.parameters());
  const std::size_t first = options.features * options.hidden;
  const std::size_t convolutions = first + options.hidden * options.embedding;
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {  // the last one, b, begins at 0
    const std::size_t inputs = i < first          ? options.features
                               : i < convolutions ? options.hidden
                                                  : options.embedding;
    weights[i] = static_cast<float>(draws.normal() / std::sqrt(static_cast<double>(inputs)));
  }
  return weights;
}

/// Trains once, and judges the first site's weights, which are those of all.
Outcome run_way(const Way& way, const Ratings& ratings, std::uint64_t seed) {
  const RatingsSplit split = sotto::split_ratings(ratings, {.members = kSites, .seed = seed});
  const sotto::RatedGraph graph =
      way.cut
          ? sotto::split_ratings(ratings, {.members = kSites, .seed = seed, .apart = true}).train
          : split.train;
  const sotto::GraphNetworkOptions options = network_of(way);
  std::vector<std::vector<float>> weights(kSites, first_weights(options, seed));
  std::vector<const sotto::GraphNetwork*> networks;
  std::vector<std::unique_ptr<sotto::Algorithm>> nodes;
  nodes.reserve(kSites);
  for (sotto::Rank rank = 0; rank < kSites; ++rank) {
    nodes.push_back(std::make_unique<sotto::ProgramGradient>(
        sotto::ProgramSetup{.rank = rank,
                            .nodes = kSites,
                            .grid = "site=4",
                            .parameters = weights[static_cast<std::size_t>(rank)],
                            .seed = seed},
        [&](const sotto::ProgramNode& node) {
          auto made = std::make_unique<sotto::GraphNetwork>(node, graph, options);
          networks.push_back(made.get());
          return made;
        },
        sotto::GroupAlgorithm{.axis = "site",
                              .step_rule = {.rule = "adam", .learning_rate = 0.01F}}));
  }
  Judge judge(split);
  Outcome outcome;
  sotto::SimulatorHooks hooks;
  hooks.trace = [&](const sotto::TraceEntry& entry) {
    const bool sent = entry.kind == sotto::TraceEntry::Kind::sent;
    outcome.megabytes += sent ? static_cast<double>(entry.bytes) / 1e6 / kSites : 0;
  };
  hooks.round_finished = [&](sotto::Rank node, sotto::Round round, sotto::SimTime time) {
    if (node == 0 && (round + 1) % kEvery == 0) {
      outcome.auc_after.emplace_back(sotto::to_seconds(time), judge(weights[0]));
    }
  };
  std::uint64_t rows_sent = 0;
  std::uint64_t rows_kept = 0;
  hooks.round_finished_by_all = [&](sotto::Round, sotto::SimTime) {
    rows_sent = rows_kept = 0;
    for (const sotto::GraphNetwork* network : networks) {
      rows_sent += network->rows_sent();
      rows_kept += network->rows_kept();
    }
    return true;
  };
  const sotto::Platform star = sotto::make_star(kSites, 1e6 / 8, sotto::from_seconds(0.05));
  sotto::Simulator simulator(
      star, {.rounds = kRounds}, std::move(nodes),
      [](sotto::Rank, sotto::Round, std::span<const float>, std::span<float> g) {
        std::ranges::fill(g, 0.0F);
      },
      std::move(hooks));
  const sotto::SimulationReport report = simulator.run();
  for (const sotto::NodeReport& node : report.nodes) {
    if (!node.status.ok()) {
      throw std::runtime_error(node.status.message());
    }
  }
  outcome.seconds = sotto::to_seconds(report.nodes[0].end);
  outcome.auc = outcome.auc_after.back().second;
  outcome.kept = static_cast<double>(rows_kept) /
                 static_cast<double>(std::max<std::uint64_t>(1, rows_sent + rows_kept));
  return outcome;
}

/// When the target is reached for good.
struct Reached {
  double rounds = 0;
  double seconds = 0;
};

/// From when on all evaluations have at least this AUC; nothing where the last has not.
std::optional<Reached> reached_by(const Outcome& outcome, double auc) {
  std::optional<Reached> since;
  double rounds = 0;
  for (const auto& [seconds, reached] : outcome.auc_after) {
    rounds += kEvery;
    if (reached < auc) {
      since.reset();
    } else if (!since) {
      since = Reached{rounds, seconds};
    }
  }
  return since;
}

/// Prints the row of a way: means over the seeds, and the time if all of them reach the target.
void measure(const Way& way, const Ratings& ratings, double target) {
  Outcome mean;
  std::optional<Reached> all = Reached{};
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const Outcome one = run_way(way, ratings, static_cast<std::uint64_t>(seed));
    mean.megabytes += one.megabytes / kSeeds;
    mean.kept += one.kept / kSeeds;
    mean.seconds += one.seconds / kSeeds;
    mean.auc += one.auc / kSeeds;
    const auto reached = reached_by(one, target);
    if (!reached) {
      all.reset();
    } else if (all) {
      all->rounds += reached->rounds / kSeeds;
      all->seconds += reached->seconds / kSeeds;
    }
  }
  const std::string rounds = all ? std::to_string(std::lround(all->rounds)) : "never";
  const std::string seconds = all ? std::to_string(std::lround(all->seconds)) : "never";
  std::printf("| %-28s | %6.2f | %4.0f %% | %6.2f | %.4f | %5s | %5s |\n", way.name, mean.megabytes,
              100 * mean.kept, mean.seconds / kRounds, mean.auc, rounds.c_str(), seconds.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a graph in parts costs on a slow network, and what it learns", "graph_wire");
  std::string file;
  double target = 0.8;
  app.add_option("FILE", file, "CSV of ratings: source, target, rating, …")
      ->required()
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  app.add_option("--target", target, "AUC that is to be reached and kept")
      ->capture_default_str()
      ->check(CLI::Range(0.5, 1.0));
  return sotto::bench::run_main(app, argc, argv, [&] {
    const Ratings ratings = sotto::read_ratings(file);
    std::printf("| rows | MB a site | left out | s a round | AUC | rounds to %.3f | s to %.3f |\n",
                target, target);
    std::printf("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (const Way& way : kWays) {
      measure(way, ratings, target);
    }
    return sotto::console::kDone;
  });
}

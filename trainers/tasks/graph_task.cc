#include <sotto/trainers/tasks/graph_task.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/base/philox.h>
#include <sotto/base/xxh3.h>
#include <sotto/groups/row_codec.h>

#include "../data/loaders/task_spec.h"

namespace sotto {
namespace {

constexpr std::string_view kKeyed = "keyed:";
constexpr int kFewestBits = 2;
constexpr int kMostBits = 8;
constexpr std::uint64_t kMostRounds = 1'000'000;
constexpr std::uint64_t kWidestRow = 4096;
constexpr std::uint64_t kMostPercent = 100;

constexpr std::array<KnownParameter, 10> kGraphParameters = {
    {{"hidden"},
     {"embedding"},
     {"halo", ParameterKind::text},
     {"gradient-halo", ParameterKind::text},
     {"cache"},
     {"share"},
     {"cut", ParameterKind::text},
     {"apart", ParameterKind::word},
     {"test"},
     {"seed"}}};

/// The only text of a parameter, or `otherwise`.
std::string text_of(const TaskSpec& spec, std::string_view parameter, std::string_view otherwise) {
  const auto texts = spec.all(parameter);
  if (texts.size() > 1) {
    refuse("task", spec.text, fmt::format("{} is given twice", parameter));
  }
  return texts.empty() ? std::string(otherwise) : texts.front();
}

std::uint64_t number_of(const TaskSpec& spec, std::string_view parameter, std::uint64_t otherwise,
                        std::uint64_t least, std::uint64_t most) {
  const std::uint64_t value = spec.value(parameter, otherwise);
  if (value < least || value > most) {
    refuse("task", spec.text, fmt::format("{} is {} to {}", parameter, least, most));
  }
  return value;
}

/// Throws Error for a compressor that rows cannot take.
void check_rows(const TaskSpec& spec, std::string_view parameter, std::size_t width,
                const Encoding& encoding) {
  try {
    const RowCodec codec(width, encoding, host_ops());
  } catch (const Error& error) {
    refuse("task", spec.text,
           fmt::format("{}={} does not go with rows of {} elements: {} (here quant:8, none or, for "
                       "halo, keyed:4 would do)",
                       parameter, encoding.compressor, width, error.what()));
  }
}

void read_halo(const TaskSpec& spec, GraphNetworkOptions& network) {
  const std::string halo = text_of(spec, "halo", "quant:8");
  network.compressor = halo;
  if (halo.starts_with(kKeyed)) {
    const auto bits =
        parse_number<int>(std::string_view(halo).substr(kKeyed.size()), kFewestBits, kMostBits);
    if (!bits) {
      refuse("task", spec.text,
             fmt::format("halo={} says in how many bits changes go, {} to {}; take keyed:4", halo,
                         kFewestBits, kMostBits));
    }
    network.keyed = true;
    network.compressor = fmt::format("quant:{}", *bits);
  }
  network.gradient_compressor = text_of(spec, "gradient-halo", "quant:8");
  check_rows(spec, "halo", network.embedding,
             {.data = Carried::activation,
              .memory = network.keyed ? ErrorMemory::keyed : ErrorMemory::none,
              .compressor = network.compressor});
  check_rows(spec, "gradient-halo", network.embedding,
             {.data = Carried::activation_gradient, .compressor = network.gradient_compressor});
}

void read_cache(const TaskSpec& spec, HaloCacheOptions& cache) {
  const bool shared = spec.numbers.contains("share");
  const std::uint64_t age = number_of(spec, "cache", 0, 0, kMostRounds);
  if (shared && age == 0) {
    refuse("task", spec.text,
           "share does nothing without a cache; give cache=8, the rounds for which a row may be "
           "left out");
  }
  const auto percent = static_cast<double>(number_of(spec, "share", 50, 1, kMostPercent));
  cache.share = age == 0 ? 0 : percent / 100;
  cache.most_age = static_cast<decltype(cache.most_age)>(age);
}

GraphCut cut_of(const TaskSpec& spec) {
  const std::string cut = text_of(spec, "cut", "walk");
  if (cut != "walk" && cut != "random") {
    refuse("task", spec.text,
           fmt::format("cut={} is no way to deal people; it is walk or random", cut));
  }
  return cut == "walk" ? GraphCut::walk : GraphCut::random;
}

/// Throws Error where there is nothing to learn or to tell apart.
void require_both_signs(const GraphProblem& problem, const std::vector<GraphLink>& links,
                        std::string_view where) {
  const auto positive = std::ranges::count(links, true, &GraphLink::positive);
  if (positive == 0 || positive == static_cast<std::ptrdiff_t>(links.size())) {
    refuse("task", problem.spec,
           fmt::format("{} has {} ratings above 0 and {} below, and needs both; take a file with "
                       "more of them, another seed or another test share{}",
                       where, positive, static_cast<std::ptrdiff_t>(links.size()) - positive,
                       problem.cut.apart ? ", fewer nodes, or leave apart out" : ""));
  }
}

/// Nodes that read other ratings would make other features of them.
std::uint64_t digest_of(const Ratings& ratings) {
  ByteBuffer bytes;
  for (const Rating& rating : ratings.all) {
    bytes.write(rating.from);
    bytes.write(rating.to);
    bytes.write(rating.value);
  }
  return xxh3(bytes.bytes());
}

double loss_of(double margin) {
  return std::max(-margin, 0.0) + std::log1p(std::exp(-std::abs(margin)));
}

}  // namespace

std::shared_ptr<const GraphProblem> load_graph(std::string_view spec) {
  const TaskSpec parsed = parse_task_spec(spec, true, kGraphParameters);
  GraphProblem problem;
  problem.spec = spec;
  GraphNetworkOptions& network = problem.network;
  network.features = kRatingFeatures;
  network.hidden = number_of(parsed, "hidden", network.hidden, 1, kWidestRow);
  network.embedding = number_of(parsed, "embedding", network.embedding, 1, kWidestRow);
  read_halo(parsed, network);
  read_cache(parsed, network.cache);
  problem.cut.test = number_of(parsed, "test", problem.cut.test, 1, 99);
  problem.cut.seed = parsed.value("seed", problem.cut.seed);
  problem.cut.cut = cut_of(parsed);
  problem.cut.apart = parsed.has("apart");
  problem.ratings = read_ratings(parsed.path);
  return std::make_shared<const GraphProblem>(std::move(problem));
}

std::shared_ptr<const RatingsSplit> split_graph(const GraphProblem& problem, int nodes) {
  if (nodes < 1 || static_cast<std::size_t>(nodes) > problem.ratings.people) {
    refuse("nodes", fmt::to_string(nodes),
           fmt::format("{} has {} people, and every node needs one; take fewer nodes", problem.spec,
                       problem.ratings.people));
  }
  RatingsCut cut = problem.cut;
  cut.members = nodes;
  auto split = std::make_shared<const RatingsSplit>(split_ratings(problem.ratings, cut));
  require_both_signs(problem, split->train.links, "training");
  require_both_signs(problem, split->test, "the test");
  return split;
}

GraphTask::GraphTask(std::shared_ptr<const GraphProblem> problem,
                     std::shared_ptr<const RatingsSplit> split)
    : problem_(std::move(problem)), split_(std::move(split)) {
  const GraphNetworkOptions& network = problem_->network;
  append_block(layout_, "conv1.weight", {network.features, network.hidden});
  append_block(layout_, "conv2.weight", {network.hidden, network.embedding});
  for (const char* const name : {"score.from", "score.to", "score.both"}) {
    append_block(layout_, name, {network.embedding});
  }
  append_block(layout_, "score.bias", {1});
  check(dimension() == network.parameters(), "the tensors are those of the network");
}

void GraphTask::initialize(std::span<float> parameters, std::uint64_t seed) const {
  check(parameters.size() == dimension(), "initialize: parameters of the task's dimension");
  RandomStream draws({.seed = seed, .purpose = Purpose::initialize});
  for (std::size_t i = 0; i < layout_.size(); ++i) {
    const ParameterBlock& block = layout_[i];
    const bool bias = i + 1 == layout_.size();
    const auto inputs = static_cast<double>(block.shape.front());
    for (float& value : parameters.subspan(block.offset, block.size)) {
      value = bias ? 0 : static_cast<float>(draws.normal() / std::sqrt(inputs));
    }
  }
}

double GraphTask::loss_and_gradient(Round /*round*/, std::span<const float> /*parameters*/,
                                    std::span<float> /*gradient*/) {
  check(false, "the gradients of a graph in parts are made by the nodes together");
  return std::numeric_limits<double>::quiet_NaN();
}

void GraphTask::make_judge() {
  RatedGraph whole = split_->train;
  std::ranges::fill(whole.owner, 0);
  if (problem_->cut.apart) {  // the test is of the undivided graph all the same
    RatingsCut cut = problem_->cut;
    cut.apart = false;
    whole = split_ratings(problem_->ratings, cut).train;
  }
  const GraphNetworkOptions exact = {.features = problem_->network.features,
                                     .hidden = problem_->network.hidden,
                                     .embedding = problem_->network.embedding,
                                     .cache = {.share = 0, .most_age = 0}};
  weights_.assign(dimension(), 0.0F);
  judge_ = std::make_unique<ProgramAlgorithm>(
      ProgramSetup{.rank = 0, .nodes = 1, .grid = "part=1", .parameters = weights_},
      [&](const ProgramNode& node) {
        auto made = std::make_unique<GraphNetwork>(node, whole, exact);
        network_ = made.get();
        return made;
      });
}

Evaluation GraphTask::evaluate(std::span<const float> parameters) {
  check(parameters.size() == dimension(), "evaluate: parameters of the task's dimension");
  if (judge_ == nullptr) {
    make_judge();
  }
  std::ranges::copy(parameters, weights_.begin());
  judge_->begin_round();
  const std::vector<float> nothing(dimension());
  if (!judge_->take_gradient(nothing).ok()) {
    judge_.reset();  // its rows are not finite
    return {.loss = std::numeric_limits<double>::quiet_NaN()};
  }
  const std::size_t width = problem_->network.embedding;
  const auto row = [&](std::uint32_t person) {
    return network_->embeddings().subspan(person * width, width);
  };
  std::vector<double> scores;
  scores.reserve(split_->test.size());
  double loss = 0;
  double weights = 0;
  for (const GraphLink& link : split_->test) {
    const double score = network_->score(row(link.from), row(link.to));
    scores.push_back(score);
    const auto weight = static_cast<double>(link.weight);
    loss += weight * loss_of(link.positive ? score : -score);
    weights += weight;
  }
  return {.loss = loss / weights, .accuracy = area_under_curve(split_->test, scores)};
}

std::shared_ptr<const PlacedModel> place_graph(const std::shared_ptr<const GraphProblem>& problem,
                                               std::shared_ptr<const RatingsSplit> split,
                                               int nodes) {
  const GraphNetworkOptions& network = problem->network;
  auto placed = std::make_shared<PlacedModel>();
  placed->kind = PlacedModel::Kind::graph;
  placed->asked = problem->spec;
  placed->own.resize(static_cast<std::size_t>(nodes));
  placed->settings = fmt::format(
      "graph in parts of ratings {:016x}, rows by {}{}, gradients by {}, cache {} of {}",
      digest_of(problem->ratings), network.keyed ? "changes in " : "", network.compressor,
      network.gradient_compressor, network.cache.share, network.cache.most_age);
  placed->build = [problem, split = std::move(split)](const ProgramNode& node) {
    return std::make_unique<GraphNetwork>(node, split->train, problem->network);
  };
  return placed;
}

}  // namespace sotto

// A graph network over parts of a graph, and the cache of boundary rows.
#include <sotto/groups/programs/graph_network.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

#include "runs.h"

namespace sotto::test::graph_network_test {

namespace {

constexpr std::uint64_t kGraphSeed = 7'041;
constexpr std::size_t kPeople = 36;

constexpr GraphNetworkOptions kNetwork = {.features = 3, .hidden = 5, .embedding = 4};

/// The kind of a person.
bool first_kind(std::uint32_t v) { return v < kPeople / 2; }

/// A graph of people of two kinds, who have more to do with their own kind, and rate it well and
/// the other one badly. Its nodes are dealt to `members` by chance.
RatedGraph drawn_graph(int members) {
  RandomStream draws({.seed = kGraphSeed, .purpose = Purpose::test});
  RatedGraph graph;
  std::set<std::pair<std::uint32_t, std::uint32_t>> edges;
  while (edges.size() < 100) {
    const auto a = static_cast<std::uint32_t>(draws.below(kPeople));
    const auto b = static_cast<std::uint32_t>(draws.below(kPeople));
    if (a < b && (first_kind(a) == first_kind(b) || draws.below(3) == 0)) {
      edges.insert({a, b});
    }
  }
  graph.edges.assign(edges.begin(), edges.end());
  for (const auto& [a, b] : graph.edges) {
    const bool turned = draws.below(2) == 0;
    graph.links.push_back({.from = turned ? b : a,
                           .to = turned ? a : b,
                           .positive = first_kind(a) == first_kind(b),
                           .weight = 1 + static_cast<float>(draws.uniform())});
  }
  for (std::uint32_t v = 0; v < kPeople; ++v) {
    for (std::size_t i = 0; i < kNetwork.features; ++i) {
      const double kind = first_kind(v) ? 1 : -1;
      graph.features.push_back(static_cast<float>((i == 0 ? kind : 0) + 0.3 * draws.normal()));
    }
  }
  RandomStream deals({.seed = kGraphSeed, .rank = 1, .purpose = Purpose::test});
  for (std::size_t v = 0; v < kPeople; ++v) {
    graph.owner.push_back(static_cast<int>(deals.below(static_cast<std::uint64_t>(members))));
  }
  return graph;
}

/// What the rounds of a job made, by node of the graph or by member.
struct GraphResult {
  std::vector<std::vector<float>> z = std::vector<std::vector<float>>(kPeople);
  std::vector<std::vector<float>> dz = std::vector<std::vector<float>>(kPeople);
  std::vector<std::vector<float>> gradients;  ///< of the last round, by member
  std::vector<double> losses;                 ///< of the last round, by member
  std::vector<double> first_losses;
  std::vector<std::uint64_t> sent, kept;

  explicit GraphResult(int members)
      : gradients(static_cast<std::size_t>(members)),
        losses(gradients.size()),
        first_losses(gradients.size()),
        sent(gradients.size()),
        kept(gradients.size()) {}
  double loss() const { return std::accumulate(losses.begin(), losses.end(), 0.0); }
  double first_loss() const {
    return std::accumulate(first_losses.begin(), first_losses.end(), 0.0);
  }
  /// The gradient of the whole: the mean of what the members hand on.
  std::vector<double> gradient() const {
    std::vector<double> mean(kNetwork.parameters());
    for (const auto& of_member : gradients) {
      for (std::size_t i = 0; i < mean.size(); ++i) {
        mean[i] += static_cast<double>(of_member[i]) / static_cast<double>(gradients.size());
      }
    }
    return mean;
  }
};

/// A network that shows what its rounds made.
class WatchedNetwork final : public GradientProgram {
 public:
  WatchedNetwork(const ProgramNode& node, const RatedGraph& graph,
                 const GraphNetworkOptions& options, GraphResult& result)
      : network_(node, graph, options),
        stages_(network_.stages().begin(), network_.stages().end()) {
    stages_.push_back({"watch",
                       [this, &graph, &result, rank = node.rank()](const RoundInput& in) {
                         show(graph, result, rank, in.round);
                         return Status();
                       },
                       nullptr, 0});
  }
  std::span<const ProgramStage> stages() const override { return stages_; }
  std::span<const float> gradient() const override { return network_.gradient(); }
  void save(ByteBuffer& out) const override { network_.save(out); }
  Status load(ByteReader& in) override { return network_.load(in); }

 private:
  void show(const RatedGraph& graph, GraphResult& result, Rank rank, Round round) {
    constexpr std::size_t kRow = kNetwork.embedding;
    std::size_t row = 0;
    for (std::size_t v = 0; v < kPeople; ++v) {
      if (graph.owner[v] == rank) {
        const auto z = network_.embeddings().subspan(row * kRow, kRow);
        const auto dz = network_.embedding_gradient().subspan(row * kRow, kRow);
        result.z[v].assign(z.begin(), z.end());
        result.dz[v].assign(dz.begin(), dz.end());
        ++row;
      }
    }
    const auto at = static_cast<std::size_t>(rank);
    result.gradients[at].assign(network_.gradient().begin(), network_.gradient().end());
    result.losses[at] = network_.loss();
    if (round == 0) {
      result.first_losses[at] = network_.loss();
    }
    result.sent[at] = network_.rows_sent();
    result.kept[at] = network_.rows_kept();
  }

  GraphNetwork network_;
  std::vector<ProgramStage> stages_;
};

/// A job of `members` on `graph`; with a rate, all-reduce trains the weights.
ProgramJob graph_job(const RatedGraph& graph, int members, const GraphNetworkOptions& options,
                     GraphResult& result, Round rounds = 1, float rate = 0) {
  const std::string grid = "site=" + std::to_string(members);
  ProgramJob job = {.nodes = members,
                    .grid = grid,
                    .dimension = kNetwork.parameters(),
                    .rounds = rounds,
                    .build = [&graph, options, &result](const ProgramNode& node) {
                      return std::make_unique<WatchedNetwork>(node, graph, options, result);
                    }};
  if (rate > 0) {
    job.make = [&graph, options, &result, rate](const ProgramSetup& setup) {
      return std::make_unique<ProgramGradient>(
          setup,
          [&graph, options, &result](const ProgramNode& node) {
            return std::make_unique<WatchedNetwork>(node, graph, options, result);
          },
          GroupAlgorithm{.axis = "site", .step_rule = {.learning_rate = rate}});
    };
  }
  return job;
}

std::vector<float> drawn_weights() {
  RandomStream draws({.seed = kGraphSeed, .rank = 2, .purpose = Purpose::test});
  std::vector<float> weights(kNetwork.parameters());
  for (float& weight : weights) {
    weight = static_cast<float>(0.5 * draws.normal());
  }
  return weights;
}

ProgramRun run_graph(const ProgramJob& job, const std::vector<float>& weights,
                     std::string_view driver = "eager") {
  ProgramRunner runner(job);
  for (Rank rank = 0; rank < job.nodes; ++rank) {
    std::ranges::copy(weights, runner.parameters(rank).begin());
  }
  ProgramRun run = runner.run(driver);
  for (const Status& status : run.statuses) {
    CAPTURE(status.message());
    CHECK(status.ok());
  }
  return run;
}

/// One round on the graph in one part.
GraphResult of_whole(const std::vector<float>& weights) {
  const RatedGraph graph = drawn_graph(1);
  GraphResult result(1);
  run_graph(graph_job(graph, 1, kNetwork, result), weights);
  return result;
}

}  // namespace

TEST_CASE("parts of a graph have the rows and gradients of the whole one, to the bit") {
  CAPTURE(kGraphSeed);
  const GraphResult whole = of_whole(drawn_weights());
  for (const int members : {2, 3, 5}) {
    const RatedGraph graph = drawn_graph(members);
    for (const std::string& driver : drivers()) {
      CAPTURE(members);
      CAPTURE(driver);
      GraphResult parts(members);
      run_graph(graph_job(graph, members, kNetwork, parts), drawn_weights(), driver);
      CHECK(parts.z == whole.z);
      CHECK(parts.dz == whole.dz);
      CHECK(parts.loss() == doctest::Approx(whole.loss()).epsilon(1e-9));
      for (std::size_t i = 0; i < kNetwork.parameters(); ++i) {
        CHECK(parts.gradient()[i] == doctest::Approx(whole.gradient()[i]).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE(
    "members that know the links of their own people alone have the same rows and gradients") {
  CAPTURE(kGraphSeed);
  const GraphResult whole = of_whole(drawn_weights());
  const RatedGraph all = drawn_graph(3);
  std::vector<RatedGraph> known(3, all);
  for (int member = 0; member < 3; ++member) {
    RatedGraph& graph = known[static_cast<std::size_t>(member)];
    for (const GraphLink& link : all.links) {
      graph.total_weight += static_cast<double>(link.weight);
    }
    std::erase_if(graph.links, [&](const GraphLink& link) {
      return all.owner[link.from] != member && all.owner[link.to] != member;
    });
    CHECK(graph.links.size() < all.links.size());
  }
  const auto job_of = [&](GraphResult& result) {
    ProgramJob job = graph_job(all, 3, kNetwork, result);
    job.build = [&known, &result](const ProgramNode& node) {
      return std::make_unique<WatchedNetwork>(node, known[static_cast<std::size_t>(node.rank())],
                                              kNetwork, result);
    };
    return job;
  };
  GraphResult parts(3);
  run_graph(job_of(parts), drawn_weights());
  CHECK(parts.z == whole.z);
  CHECK(parts.dz == whole.dz);
  CHECK(parts.loss() == doctest::Approx(whole.loss()).epsilon(1e-9));
  // A member with another sum, or other edges, is refused by the others.
  const auto refused = [&] {
    GraphResult result(3);
    ProgramRunner runner(job_of(result));
    const ProgramRun run = runner.run("inproc");
    return std::ranges::any_of(run.statuses, [](const Status& status) { return !status.ok(); });
  };
  known[1].total_weight *= 2;
  CHECK(refused());
  known[1].total_weight /= 2;
  CHECK(!refused());
  std::erase_if(known[2].edges, [&](const auto& edge) {
    return all.owner[edge.first] == 0 && all.owner[edge.second] == 0;
  });
  CHECK(refused());
}

TEST_CASE("the gradient across cut edges is that of finite differences") {
  CAPTURE(kGraphSeed);
  const RatedGraph graph = drawn_graph(3);
  GraphResult parts(3);
  run_graph(graph_job(graph, 3, kNetwork, parts), drawn_weights());
  const auto gradient = parts.gradient();
  double largest = 0;
  for (std::size_t i = 0; i < kNetwork.parameters(); ++i) {
    CAPTURE(i);
    constexpr float kStep = 2e-3F;
    auto weights = drawn_weights();
    weights[i] += kStep;
    const double above = of_whole(weights).loss();
    weights[i] -= 2 * kStep;
    const double below = of_whole(weights).loss();
    const double slope = (above - below) / (2 * static_cast<double>(kStep));
    CHECK(std::abs(gradient[i] - slope) < 3e-4);
    largest = std::max(largest, std::abs(slope));
  }
  CHECK(largest > 0.02);
}

TEST_CASE("a graph network carries what it said, and nothing where no edge is cut") {
  RatedGraph graph = drawn_graph(4);
  GraphResult result(4);
  const ProgramJob job = graph_job(graph, 4, kNetwork, result);
  const ProgramRun run = run_graph(job, drawn_weights());
  ProgramRunner again(job);
  for (Rank rank = 0; rank < 4; ++rank) {
    const auto algorithm = again.algorithm(rank);
    for (const auto& [peer, edge] : dynamic_cast<ProgramAlgorithm&>(*algorithm).volume().sent) {
      CHECK(run.traffic.at({rank, peer}).bytes == edge.bytes);
      CHECK(run.traffic.at({rank, peer}).frames == 4);
    }
  }
  // In later rounds the features stay where they are.
  GraphResult longer(4);
  const ProgramRun second = run_graph(graph_job(graph, 4, kNetwork, longer, 2), drawn_weights());
  for (const auto& [edge, traffic] : second.traffic) {
    CHECK(traffic.frames == 7);
  }
  std::ranges::fill(graph.owner, 1);
  GraphResult alone(4);
  CHECK(run_graph(graph_job(graph, 4, kNetwork, alone), drawn_weights()).traffic.empty());
}

TEST_CASE("a network on parts of a graph learns, with few bits and a cache as well") {
  const RatedGraph graph = drawn_graph(3);
  GraphResult exact(3);
  run_graph(graph_job(graph, 3, kNetwork, exact, 800, 1.0F), drawn_weights());
  CHECK(exact.loss() < 0.6 * exact.first_loss());
  GraphNetworkOptions less = kNetwork;
  less.compressor = "fp16";
  less.gradient_compressor = "quant:8";
  less.cache = {.share = 0.5, .most_age = 4};
  GraphResult cached(3);
  run_graph(graph_job(graph, 3, less, cached, 800, 1.0F), drawn_weights());
  CHECK(cached.loss() < 0.7 * cached.first_loss());
  CHECK(cached.kept[0] > cached.sent[0] / 4);
  CHECK(exact.kept[0] == 0);
}

TEST_CASE("a cache that keeps nothing is none, and kept rows are right while weights stay") {
  const RatedGraph graph = drawn_graph(3);
  GraphResult exact(3);
  const auto trained = run_graph(graph_job(graph, 3, kNetwork, exact, 6, 0.5F), drawn_weights());
  for (const HaloCacheOptions& none :
       {HaloCacheOptions{.share = 0, .most_age = 9}, HaloCacheOptions{.share = 1, .most_age = 0}}) {
    GraphNetworkOptions options = kNetwork;
    options.cache = none;
    GraphResult result(3);
    const auto run = run_graph(graph_job(graph, 3, options, result, 6, 0.5F), drawn_weights());
    CHECK(run.models == trained.models);
    for (const auto& [edge, traffic] : trained.traffic) {
      CHECK(run.traffic.at(edge).bytes == traffic.bytes);
    }
    CHECK(result.kept[1] == 0);
  }
  GraphNetworkOptions options = kNetwork;
  options.cache = {.share = 1, .most_age = 3};
  GraphResult still(3);
  run_graph(graph_job(graph, 3, options, still, 8), drawn_weights());
  CHECK(still.z == of_whole(drawn_weights()).z);
  CHECK(still.dz == of_whole(drawn_weights()).dz);
  CHECK(still.sent[0] > 0);
  CHECK(still.kept[0] == 3 * still.sent[0]);  // every fourth round sends
}

namespace {

/// Rows of T and Z go as changes of what was sent last.
GraphNetworkOptions keyed_network(const std::string& compressor) {
  GraphNetworkOptions options = kNetwork;
  options.keyed = true;
  options.compressor = compressor;
  return options;
}

}  // namespace

TEST_CASE("rows that go as changes are the rows themselves where nothing is compressed") {
  CAPTURE(kGraphSeed);
  const RatedGraph graph = drawn_graph(3);
  GraphResult exact(3);
  const auto trained = run_graph(graph_job(graph, 3, kNetwork, exact, 5, 0.5F), drawn_weights());
  GraphResult result(3);
  const auto run =
      run_graph(graph_job(graph, 3, keyed_network("none"), result, 5, 0.5F), drawn_weights());
  CHECK(run.models == trained.models);
  CHECK(result.z == exact.z);
  CHECK(result.dz == exact.dz);
  for (const auto& [edge, traffic] : trained.traffic) {
    CHECK(run.traffic.at(edge).bytes == traffic.bytes);
  }
}

TEST_CASE("rows that go as changes in few bits come to be exact while weights stay") {
  CAPTURE(kGraphSeed);
  const RatedGraph graph = drawn_graph(3);
  const GraphResult whole = of_whole(drawn_weights());
  for (const std::string compressor : {"quant:4", "quant:2"}) {
    CAPTURE(compressor);
    const auto distance = [&](Round rounds) {
      GraphResult result(3);
      run_graph(graph_job(graph, 3, keyed_network(compressor), result, rounds), drawn_weights());
      float largest = 0;
      for (std::size_t v = 0; v < kPeople; ++v) {
        for (std::size_t i = 0; i < kNetwork.embedding; ++i) {
          largest = std::max(largest, std::abs(result.z[v][i] - whole.z[v][i]));
        }
      }
      return largest;
    };
    CHECK(distance(1) > 2e-5F);  // the first time 8 bits go
    CHECK(distance(32) < 1e-5F);
  }
}

TEST_CASE("rows that go as changes in few bits take the bytes that they say") {
  const RatedGraph graph = drawn_graph(3);
  constexpr Round kRounds = 4;
  GraphResult result(3);
  const ProgramRun run =
      run_graph(graph_job(graph, 3, keyed_network("quant:2"), result, kRounds), drawn_weights());
  const auto row_bytes = [](const char* compressor) {
    return RowCodec(kNetwork.embedding,
                    {.data = Carried::activation,
                     .memory = ErrorMemory::keyed,
                     .compressor = compressor},
                    host_ops())
        .row_bytes();
  };
  CHECK(row_bytes("quant:2") < row_bytes("quant:8"));
  for (int member = 0; member < 3; ++member) {
    for (const HaloEdge& edge : graph_part(graph.edges, graph.owner, 3, member).lists.out) {
      const std::size_t rows = edge.rows.size();
      const std::size_t front = kFrameHeaderBytes + (rows + 7) / 8;
      const std::size_t features = front + rows * kNetwork.features * sizeof(float);
      const std::size_t changes = kRounds * (front + sizeof(std::uint64_t)) +
                                  rows * row_bytes("quant:8") +
                                  (kRounds - 1) * rows * row_bytes("quant:2");
      const std::size_t gradients = kRounds * (front + rows * kNetwork.embedding * sizeof(float));
      CHECK(run.traffic.at({member, edge.position}).bytes == features + 2 * changes + gradients);
    }
  }
}

TEST_CASE("a network whose rows go as changes has the same bits in all drivers, and learns") {
  CAPTURE(kGraphSeed);
  const RatedGraph graph = drawn_graph(3);
  GraphNetworkOptions options = keyed_network("quant:3");
  options.cache = {.share = 0.5, .most_age = 2};
  std::vector<std::vector<float>> first;
  for (const std::string& driver : drivers()) {
    CAPTURE(driver);
    GraphResult result(3);
    const auto run =
        run_graph(graph_job(graph, 3, options, result, 6, 0.5F), drawn_weights(), driver);
    first = first.empty() ? run.models : first;
    CHECK(run.models == first);
  }
  GraphResult learnt(3);
  run_graph(graph_job(graph, 3, keyed_network("quant:3"), learnt, 800, 1.0F), drawn_weights());
  CHECK(learnt.loss() < 0.7 * learnt.first_loss());
}

TEST_CASE("a cache leaves out the rows with the smallest gradients, until they are old") {
  const HaloLists lists = {
      .out = {{.position = 1, .rows = {0, 2, 3}}, {.position = 2, .rows = {2}}},
      .in = {},
      .longest = 3,
      .digest = 0};
  HaloCache cache(5, lists, {.share = 0.7, .most_age = 2});
  const std::vector<float> norms = {3, 9, 1, 2, 9};
  const auto chosen = [&] {
    const auto flags = cache.choose(norms);
    return std::vector<int>{flags[0], flags[2], flags[3]};
  };
  CHECK(chosen() == std::vector<int>{1, 1, 1});  // none was ever sent
  CHECK(chosen() == std::vector<int>{1, 0, 0});
  CHECK(chosen() == std::vector<int>{1, 0, 0});
  CHECK(chosen() == std::vector<int>{1, 1, 1});
  CHECK(cache.sent() == 8);
  CHECK(cache.kept() == 4);
  CHECK_THROWS_AS(HaloCache(5, lists, {.share = 1.5, .most_age = 2}), Error);
  ByteBuffer out;
  cache.save(out);
  HaloCache again(5, lists, {.share = 0.7, .most_age = 2});
  ByteReader in(out.bytes());
  CHECK(again.load(in).ok());
  CHECK(again.choose(norms)[2] == 0);
  HaloCache other(1, {}, {.share = 0.7, .most_age = 2});
  ByteReader wrong(out.bytes());
  CHECK(other.load(wrong).fault() == Fault::malformed);
}

TEST_CASE("a cache leaves out its share of the rows where their gradients tie") {
  constexpr std::size_t kRows = 100;
  HaloLists lists = {.out = {{.position = 1, .rows = {}}}, .in = {}, .longest = kRows, .digest = 0};
  for (std::uint32_t row = 0; row < kRows; ++row) {
    lists.out[0].rows.push_back(row);
  }
  RandomStream draws({.seed = kGraphSeed, .rank = 2, .purpose = Purpose::test});
  CAPTURE(kGraphSeed);
  for (const auto& [share, left_out] :
       {std::pair(0.0, 0U), std::pair(0.29, 29U), std::pair(0.5, 50U), std::pair(1.0, 100U)}) {
    for (const std::uint64_t values : {1U, 2U, 3U, 40U}) {
      CAPTURE(share);
      CAPTURE(values);
      HaloCache cache(kRows, lists, {.share = share, .most_age = 8});
      std::vector<float> norms(kRows);
      (void)cache.choose(norms);
      std::vector<std::pair<float, std::size_t>> order;
      for (std::size_t row = 0; row < kRows; ++row) {
        norms[row] = static_cast<float>(draws.below(values));
        order.emplace_back(norms[row], row);
      }
      std::ranges::sort(order);
      const auto flags = cache.choose(norms);
      for (std::size_t at = 0; at < kRows; ++at) {
        CHECK(flags[order[at].second] == (at < left_out ? 0 : 1));
      }
      CHECK(cache.kept() == left_out);
    }
  }
}

TEST_CASE("a cache sends rows whose gradients are not finite, whatever its share") {
  const HaloLists lists = {
      .out = {{.position = 1, .rows = {0, 1, 2}}}, .in = {}, .longest = 3, .digest = 0};
  HaloCache cache(3, lists, {.share = 1, .most_age = 8});
  (void)cache.choose(std::vector<float>(3));
  const auto flags = cache.choose(std::vector<float>{1, NAN, INFINITY});
  CHECK(std::vector<int>(flags.begin(), flags.end()) == std::vector<int>{0, 1, 1});
}

namespace {

/// Whether a run that goes on from what its nodes saved has the bits of one that was never
/// interrupted.
void check_resumed(const GraphNetworkOptions& options) {
  const RatedGraph graph = drawn_graph(3);
  GraphResult whole(3);
  const auto straight = run_graph(graph_job(graph, 3, options, whole, 7, 0.5F), drawn_weights());
  GraphResult pieces(3);
  ProgramRunner first(graph_job(graph, 3, options, pieces, 7, 0.5F));
  ProgramRunner second(graph_job(graph, 3, options, pieces, 7, 0.5F));
  LockstepDriver before;
  LockstepDriver after;
  for (Rank rank = 0; rank < 3; ++rank) {
    std::ranges::copy(drawn_weights(), first.parameters(rank).begin());
    before.add(first.algorithm(rank));
  }
  const auto nothing = [](Rank, Round, std::span<const float>, std::span<float> g) {
    std::ranges::fill(g, 0.0F);
  };
  REQUIRE(before.run(4, nothing).ok());
  for (Rank rank = 0; rank < 3; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    ByteBuffer saved;
    before.node(at).save(saved);
    std::ranges::copy(first.parameters(rank), second.parameters(rank).begin());
    auto algorithm = second.algorithm(rank);
    ByteReader in(saved.bytes());
    REQUIRE(algorithm->load(in).ok());
    after.add(std::move(algorithm));
  }
  REQUIRE(after.run(3, nothing).ok());
  for (Rank rank = 0; rank < 3; ++rank) {
    const auto model = second.parameters(rank);
    CHECK(std::vector<float>(model.begin(), model.end()) ==
          straight.models[static_cast<std::size_t>(rank)]);
  }
}

}  // namespace

TEST_CASE("a graph network goes on from what it saved, with the same bits") {
  GraphNetworkOptions options = kNetwork;
  options.cache = {.share = 0.5, .most_age = 5};
  check_resumed(options);
  options.keyed = true;
  options.compressor = "quant:4";
  check_resumed(options);
}

TEST_CASE("graphs that do not fit a network are refused") {
  const auto field = [](const auto& change) {
    RatedGraph graph = drawn_graph(1);
    GraphNetworkOptions options = kNetwork;
    change(graph, options);
    std::vector<float> weights(options.parameters());
    try {
      ProgramAlgorithm({.rank = 0, .nodes = 1, .grid = "site=1", .parameters = weights},
                       [&](const ProgramNode& node) {
                         return std::make_unique<GraphNetwork>(node, graph, options);
                       });
    } catch (const Error& error) {
      return error.field();
    }
    return std::string("none");
  };
  CHECK(field([](RatedGraph&, GraphNetworkOptions&) {}) == "none");
  CHECK(field([](RatedGraph&, GraphNetworkOptions& options) { options.hidden = 0; }) == "hidden");
  CHECK(field([](RatedGraph& graph, GraphNetworkOptions&) { graph.features.pop_back(); }) ==
        "features");
  CHECK(field([](RatedGraph& graph, GraphNetworkOptions&) { graph.links[0].to = 99; }) == "links");
  CHECK(field([](RatedGraph& graph, GraphNetworkOptions&) { graph.links[0].weight = 0; }) ==
        "links");
  CHECK(field([](RatedGraph& graph, GraphNetworkOptions&) {
          graph.links[0].weight = std::numeric_limits<float>::infinity();
        }) == "links");
  CHECK(field([](RatedGraph& graph, GraphNetworkOptions&) {  // along no edge
          graph.links[0].to = graph.links[0].from;
        }) == "links");
  CHECK(field([](RatedGraph& graph, GraphNetworkOptions&) { graph.total_weight = -1; }) ==
        "total_weight");
  CHECK(field([](RatedGraph& graph, GraphNetworkOptions&) { graph.edges[0].second = 99; }) ==
        "edges");
  CHECK(field([](RatedGraph& graph, GraphNetworkOptions&) { graph.edges.emplace_back(7, 7); }) ==
        "edges");
  CHECK(field([](RatedGraph& graph, GraphNetworkOptions&) {
          graph.edges.push_back(graph.edges[3]);
        }) == "edges");
}

TEST_CASE("an edge that stands twice, or leads to where it begins, is refused by name") {
  const GraphPart part = graph_part({}, std::vector<int>(4), 1, 0);
  const std::vector<std::uint32_t> row_of = {0, 1, 2, 3};
  using Edge = std::pair<std::uint32_t, std::uint32_t>;
  const auto value = [&](const std::vector<Edge>& edges) -> std::string {
    try {
      (void)PartMatrix(part, edges, row_of);
    } catch (const Error& error) {
      CHECK(error.field() == "edges");
      return error.value().value_or("");
    }
    return {};
  };
  CHECK(value({{0, 1}, {2, 1}, {3, 0}}).empty());
  CHECK(value({{0, 1}, {2, 1}, {0, 1}}) == "0-1");
  CHECK(value({{0, 1}, {2, 1}, {1, 2}}) == "1-2");
  CHECK(value({{0, 1}, {3, 3}}) == "3-3");
}

}  // namespace sotto::test::graph_network_test

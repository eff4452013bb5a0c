// Graphs from CSV files: what they mean, and what damaged ones do.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sotto/base/error.h>
#include <sotto/base/philox.h>
#include <sotto/topology/properties.h>
#include <sotto/topology/registry.h>

namespace sotto::test::graph_file_test {

namespace {

/// A file with this text, gone with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("sotto_graph_" + std::to_string(::getpid()) + "_" + std::to_string(count++) + ".csv");
    std::ofstream(path_, std::ios::binary) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string spec() const { return "file:" + path_.string(); }

 private:
  std::filesystem::path path_;
};

std::shared_ptr<const Topology> load(const std::string& text, int nodes = 0,
                                     const TopologyOptions& options = {}) {
  const TemporaryFile file(text);
  return make_topology(file.spec(), nodes, options);
}

std::string refusal(const std::string& text, int nodes = 0) {
  try {
    load(text, nodes);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

#define CHECK_MENTIONS(text, part) CHECK_MESSAGE((text).find(part) != std::string::npos, text)

}  // namespace

TEST_CASE("weights are those with which `to` mixes what `from` says") {
  const auto graph = load("from,to,weight\n0,1,0.25\n1,0,0.5\n0,0,0.5\n1,1,0.75\n");
  CHECK(graph->nodes() == 2);
  CHECK(graph->in_edges(1, 0)[0].peer == 0);
  CHECK(graph->in_edges(1, 0)[0].weight == 0.25F);
  CHECK(graph->out_edges(1, 0)[0].weight == 0.5F);
  CHECK(graph->self_weight(0, 0) == 0.5F);
  CHECK(graph->self_weight(1, 0) == 0.75F);
  CHECK(properties(*graph).row_stochastic);
  CHECK_FALSE(properties(*graph).column_stochastic);
}

TEST_CASE("own weights are taken as given, missing ones complete the row") {
  const auto given = load("from,to,weight\n0,1,0.25\n1,0,0.25\n0,0,0.5\n1,1,0\n");
  CHECK(given->self_weight(0, 0) == 0.5F);
  CHECK(given->self_weight(1, 0) == 0.0F);
  CHECK_FALSE(properties(*given).row_stochastic);
  const auto mixed = load("from,to,weight\n0,1,0.25\n1,0,0.25\n0,0,0.5\n");
  CHECK(mixed->self_weight(0, 0) == 0.5F);
  CHECK(mixed->self_weight(1, 0) == 0.75F);
  const auto completed = load("from,to,weight\n0,1,0.1\n1,0,0.1\n");
  CHECK(static_cast<double>(completed->self_weight(1, 0)) +
            static_cast<double>(completed->in_edges(1, 0)[0].weight) ==
        1.0);
  CHECK_MENTIONS(refusal("from,to,weight\n0,2,0.6\n1,2,0.6\n"), "node 2");
  CHECK_MENTIONS(refusal("from,to,weight\n0,2,0.6\n1,2,0.6\n0,0,1\n"), "sum to 1.2");
  CHECK(load("from,to,weight\n0,2,0.6\n1,2,0.6\n2,2,0.2\n")->self_weight(2, 0) == 0.2F);
}

TEST_CASE("decimals of a third complete without a negative weight") {
  const auto graph = load("from,to,weight\n0,3,0.333333333\n1,3,0.333333333\n2,3,0.333333333\n");
  CHECK(graph->self_weight(3, 0) >= 0.0F);
  CHECK(graph->self_weight(3, 0) < 1e-6F);
}

TEST_CASE("without weights: Metropolis when undirected, equal shares when directed") {
  const auto star = load("from,to\n0,1\n1,0\n2,0\n0,2\n");
  CHECK(star->in_edges(1, 0)[0].weight == doctest::Approx(1.0 / 3));
  CHECK(star->self_weight(1, 0) == doctest::Approx(2.0 / 3));
  CHECK(properties(*star).doubly_stochastic());
  const auto directed = load("from,to\n0,1\n0,2\n1,2\n2,0\n");
  CHECK(directed->out_edges(0, 0)[0].weight == doctest::Approx(1.0 / 3));
  CHECK(directed->self_weight(1, 0) == 0.5F);
  CHECK(properties(*directed).column_stochastic);
  CHECK_FALSE(properties(*directed).row_stochastic);
  CHECK(properties(*directed).connected);
}

TEST_CASE("a weighting asked for replaces the file's, lazy halves them") {
  const std::string text = "from,to,weight\n0,1,0.1\n1,0,0.1\n";
  CHECK(load(text, 0, {.weighting = Weighting::metropolis})->self_weight(0, 0) == 0.5F);
  CHECK(load(text, 0, {.lazy = true})->in_edges(0, 0)[0].weight == doctest::Approx(0.05));
  const auto given =
      load("from,to,weight\n0,1,0.5\n1,0,0.5\n0,0,0.5\n1,1,0.5\n", 0, {.lazy = true});
  CHECK(given->self_weight(0, 0) == 0.75F);
  CHECK(given->in_edges(0, 0)[0].weight == 0.25F);
  CHECK(load("from,to,weight\n0,1,1\n1,0,1\n", 0, {.lazy = true})->self_weight(0, 0) == 0.5F);
}

TEST_CASE("layout: order of columns, spaces, blank lines, line ends, byte-order mark") {
  const auto graph =
      load("\xEF\xBB\xBF\r\n weight , to,from \r\n\r\n0.25,1, 0\r\n\t0.5 ,0,1\r\n\r\n");
  CHECK(graph->in_edges(1, 0)[0].weight == 0.25F);
  CHECK(graph->in_edges(0, 0)[0].weight == 0.5F);
}

TEST_CASE("the node count is the highest rank's, or the one given") {
  CHECK(load("from,to\n0,4\n4,0\n")->nodes() == 5);
  const auto more = load("from,to\n0,1\n1,0\n", 4);
  CHECK(more->nodes() == 4);
  CHECK_FALSE(properties(*more).connected);
  CHECK(load("from,to\n", 3)->edge_count(0) == 0);
  CHECK(load("from,to\n0,0\n")->nodes() == 1);
  CHECK_MENTIONS(refusal("from,to\n"), "number of nodes");
  CHECK_MENTIONS(refusal("from,to\n0,1\n7,0\n", 4), "line 3, column from: '7'");
  CHECK_MENTIONS(refusal("from,to\n0,1\n", -1), "any count");
}

TEST_CASE("lists of edges are read as other programs write them") {
  using Edges = std::vector<std::pair<Rank, Rank>>;
  const auto edges = [](const std::string& text, int nodes = 0) {
    const auto graph = load(text, nodes);
    Edges found;
    for (Rank node = 0; node < graph->nodes(); ++node) {
      for (const Edge& edge : graph->out_edges(node, 0)) {
        found.emplace_back(node, edge.peer);
      }
    }
    return found;
  };
  const Edges there = {{0, 1}, {1, 2}, {2, 0}};
  for (const char* text : {"0,1\n1,2\n2,0\n", "0\t1\r\n1\t2\r\n2\t0\r\n", "0 1\r1  2\r2 0\r",
                           "FROM;To\n0;1\n1;2\n2;0\n",
                           "# Directed graph: edges.txt\n# "
                           "FromNodeId\tToNodeId\n30\t1408\n1408\t1000000007\n1000000007\t30\n",
                           "% asym unweighted\n1 2\n2 3\n3 1\n",
                           "Source,Target,Type,Id,Label,Weight\n5,6,Directed,0,,1.0\n6,7,Directed,"
                           "1,,1\n7,5,directed,2,,1\n",
                           "\"source\"\t\"target\"\n0\t1\n1\t2\n2\t0\n"}) {
    CAPTURE(text);
    CHECK(edges(text) == there);
  }
  const Edges both = {{0, 1}, {1, 0}, {1, 2}, {2, 1}};
  for (const char* text :
       {"# Undirected graph: ../data/friends.txt\n0\t1\n1\t2\n",
        "# Undirected graph\n0\t1\n1\t0\n1\t2\n2\t1\n", "% sym weighted\n1 2\n2 3\n",
        "Source;Target;Type\n0;1;Undirected\n1;2;Undirected\n"}) {
    CAPTURE(text);
    CHECK(edges(text) == both);
  }
  // Weights and ratings without a header, a decimal comma, and a time behind them.
  CHECK(load("0 1 0.25\n1 0 0.5\n")->in_edges(1, 0)[0].weight == 0.25F);
  CHECK(load("from;to;weight\n0;1;0,25\n1;0;0,5\n")->in_edges(1, 0)[0].weight == 0.25F);
  CHECK(edges("7,8,5,1407470400\n8,7,-3,1376539200\n") == Edges{{0, 1}});
  CHECK(edges("0,1\n1,0\n", 3) == Edges{{0, 1}, {1, 0}});
  CHECK_MENTIONS(refusal("10 20\n20 30\n", 2), "3 nodes");
  CHECK_MENTIONS(refusal("0 1\n1 x\n"), "line 2, column to: 'x'");
  CHECK_MENTIONS(refusal("Source,Target,Weight\n0,1,3\n1,0,2\n"), "leave the column out");
  CHECK_MENTIONS(refusal("Source,Target,Type\n0,1,both\n"), "Directed or Undirected");
  CHECK_MENTIONS(refusal("%%MatrixMarket matrix coordinate\n3 3 1\n1 2\n"), "MatrixMarket");
  CHECK_MENTIONS(refusal("PK\x03\x04\x01\x01"), "zip");
}

TEST_CASE("a comment makes edges run both ways in SNAP's and KONECT's words alone, above them") {
  const auto degree_of_last = [](const std::string& text) {
    return load(text)->out_edges(1, 0).size();
  };
  for (const char* words :
       {"# Undirected graph: roads.txt", "#Undirected graph", "# undirected graph (each edge once)",
        "# roads\n\n# Undirected graph: roads.txt\n# Nodes: 2 Edges: 1", "% sym positive",
        "% sym unweighted\n% 1 2 2"}) {
    CAPTURE(words);
    CHECK(degree_of_last(std::string(words) + "\n0 1\n") == 1);
  }
  for (const char* words :
       {"# Directed graph, converted from an undirected one", "# this is not undirected",
        "# Undirected graphs are elsewhere", "% Undirected edges were dropped",
        "# Directed graph (each unordered pair of nodes is saved once)", "% sym links of a disk",
        "# sym weighted", "% symmetric weighted"}) {
    CAPTURE(words);
    CHECK(degree_of_last(std::string(words) + "\n0 1\n") == 0);
  }
  CHECK(degree_of_last("0 1\n# Undirected graph: late\n") == 0);
  CHECK(load("from,to\n0,1\n# Undirected graph: late\n2,1\n")->out_edges(1, 0).empty());
  CHECK(load("from,to\n% sym weighted\n0,1\n")->out_edges(1, 0).empty());
}

TEST_CASE("errors name line and column") {
  const std::string header = "from,to,weight\n";
  CHECK_MENTIONS(refusal(""), "an empty file");
  CHECK_MENTIONS(refusal("0,one,0.5\n"), "line 1, column 1: '0'");
  CHECK_MENTIONS(refusal("from,to,wait\n"), "line 1, column 3: 'wait'");
  CHECK_MENTIONS(refusal("from,from\n"), "line 1, column 2: 'from'");
  CHECK_MENTIONS(refusal("from\n"), "the first line is");
  CHECK_MENTIONS(refusal("from,weight\n"), "the first line is");
  CHECK_MENTIONS(refusal(header + "0,1\n"), "line 2: '0,1'");
  CHECK_MENTIONS(refusal(header + "0,1,0.5,7\n"), "3 columns");
  CHECK_MENTIONS(refusal(header + "0,1,0.5\n\n1,x,0.5\n"), "line 4, column to: 'x'");
  CHECK_MENTIONS(refusal(header + "-1,1,0.5\n"), "line 2, column from: '-1'");
  CHECK_MENTIONS(refusal(header + "1.0,0,0.5\n"), "column from: '1.0'");
  CHECK_MENTIONS(refusal(header + "4294967296,0,0.5\n"), "column from: '4294967296'");
  CHECK_MENTIONS(refusal(header + "2147483647,0,0.5\n"), "ranks go from 0 to 1048575");
  CHECK_MENTIONS(refusal(header + "0,1,0.2\n1,0,0.2\n0,1,0.3\n"), "line 4, column from,to: '0,1'");
  CHECK_MENTIONS(refusal(header + "0,1,0.2\n1,0,0.2\n0,1,0.3\n"), "line 2 has this edge");
  for (const std::string weight : {"", "-0.5", "nan", "inf", "-inf", "1e308", "1e999", "1e-999",
                                   "1.0001", "0.5x", "0,5", "0x1p-1", "--1", "1e-60", "0", "-0"}) {
    CAPTURE(weight);
    CHECK_MENTIONS(refusal(header + "0,1," + weight + "\n"), "line 2");
  }
  const std::string wild = refusal(header + std::string(100000, '\x01') + ",1,0.5\n");
  CHECK(wild.size() < 300);
  CHECK(wild.find('\x01') == std::string::npos);
}

TEST_CASE("ratings become one-sided trust from a threshold on, or where they are positive") {
  const TemporaryFile file("from,to,rating\n0,1,5\n1,0,-3\n1,2,2\n2,0,0.5\n0,2,0\n3,0,1e1\n");
  const auto edges = [&](const std::string& more) {
    const auto graph = make_topology(file.spec() + more, 0);
    CHECK(graph->nodes() == 4);
    std::vector<std::pair<Rank, Rank>> found;
    for (Rank node = 0; node < 4; ++node) {
      for (const Edge& edge : graph->out_edges(node, 0)) {
        found.emplace_back(node, edge.peer);
      }
    }
    return found;
  };
  using Edges = std::vector<std::pair<Rank, Rank>>;
  CHECK(edges("") == Edges{{0, 1}, {1, 2}, {2, 0}, {3, 0}});
  CHECK(edges(",threshold=2") == Edges{{0, 1}, {1, 2}, {3, 0}});
  CHECK(edges(",threshold=-3") == Edges{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {3, 0}});
  // Each sender splits its mass among those it trusts.
  const auto graph = make_topology(file.spec(), 0);
  CHECK(graph->out_edges(0, 0)[0].weight == 0.5F);
}

TEST_CASE("ratings that are none, and thresholds of nothing, are refused") {
  CHECK_MENTIONS(refusal("from,to,rating\n0,1,much\n"), "a rating is a number");
  CHECK_MENTIONS(refusal("from,to,rating\n0,1,inf\n"), "a rating is a number");
  CHECK_MENTIONS(refusal("from,to,weight,rating\n0,1,0.5,1\n"), "the first line is");
  CHECK_MENTIONS(refusal("to,rating\n0,1\n"), "the first line is");
  const TemporaryFile plain("from,to\n0,1\n1,0\n");
  CHECK_THROWS_WITH_AS(make_topology(plain.spec() + ",threshold=1", 0),
                       doctest::Contains("a threshold is one of ratings"), Error);
  CHECK_THROWS_WITH_AS(make_topology(plain.spec() + ",threshold=high", 0),
                       doctest::Contains("a threshold is a number"), Error);
}

TEST_CASE("published trust lists are read as they are: source, target, rating, time") {
  const TemporaryFile file("source,target,rating,time\n0,1,5,1407470400\n1,0,-3,1376539200\n");
  const auto graph = make_topology(file.spec(), 0);
  CHECK(graph->nodes() == 2);
  CHECK(graph->edge_count(0) == 1);
  CHECK_MENTIONS(refusal("source,from,to\n0,1,2\n"), "the first line is");
}

TEST_CASE("a cut is a strongly connected part, balanced and rich in one-sided edges") {
  // 20, 30 and 40 trust round in a circle, 50 and 30 each other; 60 is trusted and trusts nobody.
  const TemporaryFile file(
      "from,to\n20,30\n30,40\n40,20\n50,30\n30,50\n20,60\n30,60\n20,50\n40,50\n50,40\n");
  using Edges = std::vector<std::pair<Rank, Rank>>;
  const auto edges = [&](const std::string& more) {
    const auto graph = make_topology(file.spec() + more, 0);
    Edges found;
    for (Rank node = 0; node < graph->nodes(); ++node) {
      for (const Edge& edge : graph->out_edges(node, 0)) {
        found.emplace_back(node, edge.peer);
      }
    }
    return found;
  };
  // It starts from 50, two of whose edges run out and three in, and takes 30, then 40, then 20.
  CHECK(edges(",cut=1").empty());
  CHECK(edges(",cut=2") == Edges{{0, 1}, {1, 0}});
  CHECK(edges(",cut=3") == Edges{{0, 1}, {0, 2}, {1, 2}, {2, 0}, {2, 1}});
  const Edges four = {{0, 1}, {0, 3}, {1, 2}, {1, 3}, {2, 0}, {2, 3}, {3, 1}, {3, 2}};
  CHECK(edges(",cut=4") == four);
  CHECK(properties(*make_topology(file.spec() + ",cut=4", 4)).connected);
  CHECK(edges(",cut=4,mutual") == Edges{{1, 3}, {2, 3}, {3, 1}, {3, 2}});
  CHECK(edges(",mutual,cut=4") == edges(",cut=4,mutual"));
  CHECK(make_topology(file.spec() + ",mutual", 0)->nodes() == 61);
}

TEST_CASE("cuts of random trust lists are strongly connected, and the same on every call") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::test});
    std::string text = "from,to,rating\n";
    for (int from = 0; from < 60; ++from) {
      for (int to = 0; to < 60; ++to) {
        if (from != to && random.uniform() < 0.1) {
          text += fmt::format("{},{},{}\n", 3 * from, 3 * to, 1 + random.below(10));
        }
      }
    }
    const TemporaryFile file(text);
    const auto graph = make_topology(file.spec() + ",threshold=3,cut=24", 0);
    CHECK(graph->nodes() == 24);
    CHECK(properties(*graph).connected);
    CHECK(properties(*graph).column_stochastic);
    const auto again = make_topology(file.spec() + ",cut=24,threshold=3", 24);
    for (Rank node = 0; node < 24; ++node) {
      const auto edges = graph->out_edges(node, 0);
      const auto same = again->out_edges(node, 0);
      CHECK(std::equal(edges.begin(), edges.end(), same.begin(), same.end(),
                       [](const Edge& a, const Edge& b) { return a.peer == b.peer; }));
    }
  }
}

TEST_CASE("cuts that cannot be are refused") {
  // A circle is strongly connected as a whole or not at all.
  const TemporaryFile oneway("from,to\n0,1\n1,2\n2,0\n");
  CHECK_THROWS_WITH_AS(make_topology(oneway.spec() + ",cut=2", 0),
                       doctest::Contains("grew to 1 nodes"), Error);
  CHECK_THROWS_WITH_AS(make_topology(oneway.spec() + ",cut=1", 2), doctest::Contains("has 1 nodes"),
                       Error);
  CHECK(make_topology(oneway.spec() + ",cut=3", 0)->edge_count(0) == 3);
  for (const std::string bad : {",cut=0", ",cut=-1", ",cut=", ",cut=two", ",cut=3.5"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(make_topology(oneway.spec() + bad, 0),
                         doctest::Contains("a cut is a number of nodes"), Error);
  }
  const TemporaryFile weights("from,to,weight\n0,1,0.5\n1,0,0.5\n");
  for (const std::string part : {",cut=2", ",mutual"}) {
    CHECK_THROWS_WITH_AS(make_topology(weights.spec() + part, 0),
                         doctest::Contains("leave out the column weight"), Error);
  }
}

TEST_CASE("what is no file is refused") {
  CHECK_THROWS_AS(make_topology("file:", 0), Error);
  CHECK_THROWS_AS(make_topology("file:/does/not/exist.csv", 0), Error);
  CHECK_THROWS_AS(make_topology("file:/", 0), Error);
  CHECK_THROWS_AS(make_topology("file:/dev/zero", 0), Error);
}

TEST_CASE("damaged files give a graph or an error, nothing else") {
  const std::string whole =
      "from,to,weight\r\n0,1,0.25\r\n1,2,0.125\r\n2,0,0.5\r\n0,0,0.5\r\n3,1,1e-3\r\n";
  const auto survives = [](const std::string& text) {
    try {
      const auto topology = load(text);
      CHECK(topology->nodes() >= 1);
      CHECK(topology->nodes() <= 1 << 20);
      if (topology->nodes() < 1000) {
        properties(*topology);
      }
    } catch (const Error& error) {
      CHECK(std::string(error.what()).size() > 10);
    }
  };
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    CAPTURE(length);
    survives(whole.substr(0, length));
  }
  constexpr std::array<char, 16> kAlphabet = {'0', '9', ',', '\n', '.', '-', 'e', '\0',
                                              ' ', 'x', '"', '\r', '1', '+', 'n', '\xFF'};
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = Purpose::test});
    std::string text = whole;
    for (std::uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
      const std::size_t at = random.below(text.size());
      const char letter = kAlphabet[random.below(kAlphabet.size())];
      switch (random.below(3)) {
        case 0:
          text[at] = letter;
          break;
        case 1:
          text.insert(at, 1, letter);
          break;
        default:
          text.erase(at, 1 + random.below(8));
      }
    }
    survives(text);
  }
}

}  // namespace sotto::test::graph_file_test

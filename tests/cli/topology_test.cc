// `sotto topology`: the figures as JSON and for people, drawings, and refusals.
#include <cmath>
#include <filesystem>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"
#include "support/text_of_file.h"

namespace sotto::test::topology_test {

using doctest::Approx;

TEST_CASE("topology gives an 8-node ring's figures as JSON") {
  const auto json = run({"topology", "ring", "--nodes", "8", "--json", "-"}).json();
  CHECK(json.at("nodes") == 8);
  CHECK(json.at("directed") == false);
  CHECK(json.at("edges") == 8);
  CHECK(json.at("degree_min") == 2);
  CHECK(json.at("degree_max") == 2);
  CHECK(json.at("connected") == true);
  const double rho = (1 + 2 * std::sqrt(0.5)) / 3;
  CHECK(json.at("rho").get<double>() == Approx(rho).epsilon(1e-6));
  CHECK(json.at("spectral_gap").get<double>() == Approx(1 - rho).epsilon(1e-6));
  CHECK(json.at("mu").get<double>() == Approx(4.0 / 3).epsilon(1e-6));
  CHECK(json.at("dcd_alpha_limit").get<double>() == Approx((1 - rho) * 3 / 8).epsilon(1e-6));
  CHECK(json.at("weights").size() == 16);
  std::set<std::string> within;
  for (const auto& entry : json.at("compressors")) {
    if (entry.at("within_theory").get<bool>()) {
      within.insert(entry.at("compressor").get<std::string>());
    }
  }
  CHECK(within == std::set<std::string>{"quant:8", "quant:6"});
}

TEST_CASE("topology: a single node has no limit, and JSON says null") {
  const auto json = run({"topology", "ring", "--nodes", "1", "--json", "-"}).json();
  CHECK(json.at("dcd_alpha_limit").is_null());
  CHECK(json.at("rho") == 0.0);
  CHECK(json.at("connected") == true);
}

TEST_CASE("topology: no theory covers DCD on a graph that changes or has one direction") {
  for (const std::string graph : {"matching:5", "base:2", "exponential"}) {
    CAPTURE(graph);
    CHECK(run({"topology", graph, "--nodes", "8", "--json", "-"})
              .json()
              .at("dcd_alpha_limit")
              .is_null());
    CHECK(run({"topology", graph, "--nodes", "8"}).out.find("α limit") == std::string::npos);
  }
  CHECK(run({"topology", "ring", "--nodes", "8"}).out.find("α limit") != std::string::npos);
}

TEST_CASE("topology reads a file, draws it, and reports what is not connected") {
  const Scratch folder;
  const auto file = folder.write("graph.csv", "from,to,weight\n0,1,0.25\n1,0,0.5\n2,2,1\n");
  const auto drawing = folder.path() / "graph.svg";
  const auto ended =
      run({"topology", "file:" + file.string(), "--svg", drawing.string(), "--json", "-"});
  const auto json = ended.json();
  CHECK(json.at("nodes") == 3);
  CHECK(json.at("connected") == false);
  CHECK(json.at("weights")[0] == nlohmann::json{{"from", 1}, {"to", 0}, {"weight", 0.5}});
  CHECK(json.at("self_weights") == nlohmann::json{0.5, 0.75, 1.0});
  const std::string svg = text_of_file(drawing);
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
}

TEST_CASE("topology says what it means that models would not come together") {
  const Scratch folder;
  const auto shown = [&](const char* graph) {
    return run({"topology", "file:" + folder.write("graph.csv", graph).string()}).out;
  };
  const auto parts = shown("from,to\n0,1\n1,0\n2,3\n3,2\n");
  CHECK(contains(parts, "Not connected: its parts never hear of each other"));
  CHECK_FALSE(contains(parts, "converges"));
  CHECK(contains(shown("from,to\n0,1\n"), "Not strongly connected"));
  const auto bipartite = shown("from,to,weight\n0,1,1\n1,0,1\n");
  CHECK(contains(bipartite, "No spectral gap"));
}

TEST_CASE("topology shows a table, and the round asked for") {
  const auto ended = run({"topology", "--topology", "one-peer-exponential", "--round", "2"});
  CHECK(ended.status == 0);
  CHECK(contains(ended.out, "hears in round 2"));
  CHECK(contains(ended.out, "4 × 0.5"));
  CHECK(run({"topology", "ring", "--quiet"}).out.empty());
}

TEST_CASE("topology refuses with status 2 and says what would do") {
  const Arguments wrong[] = {{"topology"},
                             {"topology", "rng"},
                             {"topology", "hypercube", "--nodes", "9"},
                             {"topology", "regular:3", "--nodes", "9"},
                             {"topology", "torus:3x4", "--nodes", "13"},
                             {"topology", "ring", "--nodes", "0"},
                             {"topology", "ring", "--nodes", "many"},
                             {"topology", "ring", "--round", "-1"},
                             {"topology", "ring", "--weighting", "best"},
                             {"topology", "exponential", "--weighting", "metropolis"},
                             {"topology", "ring", "--compressor", "zip"},
                             {"topology", "ring", "--svg", "/no/such/folder/ring.svg"},
                             {"topology", "file:/no/such/file.csv"}};
  for (const Arguments& words : wrong) {
    CAPTURE(words.back());
    const auto ended = run(words);
    CHECK(ended.status == 2);
    CHECK(ended.out.empty());
    CHECK_FALSE(ended.err.empty());
  }
  CHECK(contains(run({"topology", "hypercube", "--nodes", "9"}).err, "8 or 16 nodes"));
}

}  // namespace sotto::test::topology_test

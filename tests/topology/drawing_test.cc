#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <sotto/base/error.h>
#include <sotto/topology/drawing.h>
#include <sotto/topology/load_drawing.h>
#include <sotto/topology/properties.h>
#include <sotto/topology/registry.h>

namespace sotto::test::drawing_test {

namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

/// Every tag is closed, in order, and attributes are quoted.
bool well_formed(std::string_view text) {
  std::vector<std::string_view> open;
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const std::size_t end = text.find('>', at);
    if (end == std::string_view::npos || text.substr(at + 1, end - at - 1).find('<') != text.npos) {
      return false;
    }
    const std::string_view tag = text.substr(at + 1, end - at - 1);
    const std::string_view name = tag.substr(0, tag.find_first_of(" /", 1));
    if (count(tag, "'") % 2 != 0) {
      return false;
    }
    if (tag.starts_with('/')) {
      if (open.empty() || tag.substr(1) != open.back()) {
        return false;
      }
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
  }
  return open.empty();
}

}  // namespace

TEST_CASE("a drawing is well-formed and shows every node and edge") {
  for (const std::string spec : {"ring", "complete", "star", "grid", "torus", "hypercube",
                                 "exponential", "one-peer-exponential", "base:1", "matching"}) {
    for (const int nodes : {1, 2, 16, 64}) {
      CAPTURE(spec);
      CAPTURE(nodes);
      const auto topology = make_topology(spec, nodes);
      const GraphProperties graph = properties(*topology);
      const std::string svg = draw_svg(*topology);
      CHECK(svg.starts_with("<svg xmlns='http://www.w3.org/2000/svg'"));
      CHECK(well_formed(svg));
      CHECK(count(svg, "<circle") == static_cast<std::size_t>(nodes));
      const std::size_t arrows = count(svg, "marker-end");
      CHECK(arrows == (graph.directed ? graph.edges : 0));
      CHECK(svg.find("nan") == std::string::npos);
      CHECK(svg.find("inf") == std::string::npos);
      if (spec == "ring" || graph.directed) {
        CHECK(count(svg, "stroke-width") == graph.edges + static_cast<std::size_t>(nodes));
      }
    }
  }
}

TEST_CASE("a torus shows the edges that wrap round as two stubs") {
  const std::string svg = draw_svg(*make_topology("torus:4x5", 20));
  CHECK(count(svg, "stroke-dasharray") == 2 * (4 + 5));
  CHECK(count(draw_svg(*make_topology("grid:4x5", 20)), "stroke-dasharray") == 0);
}

TEST_CASE("names are escaped, figures are shown") {
  const Topology topology("file:<a & b>.csv", 3, {{{0, 1, 0.25}}});
  const std::string svg = draw_svg(topology);
  CHECK(well_formed(svg));
  CHECK(svg.find("file:&lt;a &amp; b&gt;.csv") != std::string::npos);
  CHECK(svg.find("not connected") != std::string::npos);
  CHECK(draw_svg(*make_topology("ring", 8)).find("α &lt; 0.0732") != std::string::npos);
}

TEST_CASE("a few hundred nodes can be drawn, a blot is refused") {
  CHECK(well_formed(draw_svg(*make_topology("complete", 200))));
  CHECK(well_formed(draw_svg(*make_topology("grid", 1000))));
  CHECK_THROWS_AS(draw_svg(*make_topology("ring", 3000)), Error);
  CHECK_THROWS_AS(draw_svg(*make_topology("complete", 400)), Error);
}

TEST_CASE("a graph with its load has an arrow for each edge that carries something") {
  const auto ring = make_topology("ring", 8);
  std::vector<EdgeLoad> edges;
  for (Rank node = 0; node < 8; ++node) {
    edges.push_back({node, (node + 1) % 8, node / 7.0, node == 3 ? 1.0 : 0.1, "<3 MB>"});
  }
  const std::string svg = draw_load_svg(*ring, edges);
  CHECK(well_formed(svg));
  CHECK(count(svg, "<circle") == 8);
  CHECK(count(svg, "z' fill=") == 8);
  CHECK(count(svg, "&lt;3 MB&gt;") == 8);
  for (Rank node = 0; node < 8; ++node) {
    CHECK(svg.find(load_colour(node / 7.0)) != std::string::npos);
  }
  CHECK(svg.find("nan") == std::string::npos);
  std::vector<NodeLoad> nodes(8, {0.25, "up 25 % busy"});
  nodes[5] = {1, "up 100 % busy"};
  const std::string busy = draw_load_svg(*ring, edges, nodes);
  CHECK(well_formed(busy));
  CHECK(count(busy, "style='fill:" + load_colour(0.25) + "'") == 7);
  CHECK(count(busy, "node 5: up 100 % busy") == 1);
  // Nodes stand where the plain drawing has them, edges that wrap round end at the border.
  const std::string torus = draw_load_svg(
      *make_topology("torus:3x4", 12), std::vector<EdgeLoad>{{0, 8, 1, 1, ""}, {0, 1, 1, 1, ""}});
  CHECK(count(torus, "stroke-dasharray") == 1);
  CHECK(load_colour(-1) == load_colour(0));
  CHECK(load_colour(2) == load_colour(1));
  CHECK_THROWS_AS(draw_load_svg(*make_topology("ring", 500), edges), Error);
}

}  // namespace sotto::test::drawing_test

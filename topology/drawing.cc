#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sotto/base/error.h>
#include <sotto/base/text.h>
#include <sotto/topology/drawing.h>
#include <sotto/topology/properties.h>
#include <sotto/topology/spectrum.h>

#include "internal/drawing_parts.h"
#include "internal/layout.h"

namespace sotto {
namespace {

using internal::Layout;
using internal::Point;

constexpr std::size_t kMostEdges = 40000;
constexpr int kMostNodesDrawn = 2000;
constexpr std::size_t kTooltipEdges = 2000;
constexpr double kPadding = 24;
constexpr double kHeader = 92;
constexpr double kFooter = 44;
constexpr double kMinWidth = 560;
constexpr double kArrow = 11;

/// One colour for graphs that stay, one a round for those that change (Okabe and Ito's palette,
/// which colour-blind readers can tell apart).
constexpr std::array<const char*, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#56b4e9", "#e69f00", "#6b6b6b"};

/// An arrow, or both directions of an undirected edge.
struct Stroke {
  Rank from = 0;
  Rank to = 0;
  double weight = 0;  ///< the mean of both directions when they differ
  Round round = 0;
};

const char* colour(Round round) { return kColours[round % kColours.size()]; }

/// Every edge of every round; undirected ones once, from their lower rank.
std::vector<Stroke> strokes_of(const Topology& topology, bool directed) {
  std::vector<Stroke> strokes;
  for (Round round = 0; round < topology.period(); ++round) {
    for (Rank node = 0; node < topology.nodes(); ++node) {
      const auto out = topology.out_edges(node, round);
      const auto in = topology.in_edges(node, round);
      for (std::size_t k = 0; k < out.size(); ++k) {
        const auto weight = static_cast<double>(out[k].weight);
        if (directed) {
          strokes.push_back({node, out[k].peer, weight, round});
        } else if (node < out[k].peer) {
          // Without direction, both lists name the same peers in the same order.
          const double mean = (weight + static_cast<double>(in[k].weight)) / 2;
          strokes.push_back({node, out[k].peer, mean, round});
        }
      }
    }
  }
  return strokes;
}

class Drawing {
 public:
  explicit Drawing(const Topology& topology)
      : topology_(topology), graph_(properties(topology)), layout_(internal::lay_out(topology)) {}

  std::string draw() {
    require_drawable();
    strokes_ = strokes_of(topology_, graph_.directed);
    for (const Stroke& stroke : strokes_) {
      heaviest_ = std::max(heaviest_, stroke.weight);
      lightest_ = std::min(lightest_, stroke.weight);
    }
    // The more strokes cross each other, the finer they are.
    fineness_ = std::clamp(std::sqrt(50.0 / static_cast<double>(strokes_.size() + 1)), 0.1, 1.0);
    width_ = std::max(kMinWidth, layout_.width + 2 * kPadding);
    height_ = kHeader + layout_.height + kFooter;
    left_ = (width_ - layout_.width) / 2;
    draw_head();
    for (const Stroke& stroke : strokes_) {
      draw_stroke(stroke);
    }
    draw_nodes();
    draw_legend();
    svg_ += "</svg>\n";
    return std::move(svg_);
  }

 private:
  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(svg_), format, std::forward<Values>(values)...);
  }

  void require_drawable() const {
    if (topology_.nodes() > kMostNodesDrawn || graph_.edges > kMostEdges) {
      refuse("drawing", topology_.name(),
             fmt::format("{} nodes and {} edges would be a blot; up to {} nodes and {} edges can "
                         "be drawn",
                         topology_.nodes(), graph_.edges, kMostNodesDrawn, kMostEdges));
    }
  }

  Point place(Point point) const { return {left_ + point.x, kHeader + point.y}; }
  Point node_at(Rank node) const { return place(layout_.nodes[static_cast<std::size_t>(node)]); }

  void draw_head() {
    add("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0:.0f} {1:.0f}' width='{0:.0f}' "
        "height='{1:.0f}' font-family='system-ui, Helvetica, Arial, sans-serif'>\n",
        width_, height_);
    add("<title>{}</title>\n", markup_text(topology_.name()));
    for (Round round = 0; graph_.directed && round < colours(); ++round) {
      add("<marker id='arrow{}' viewBox='0 0 10 10' refX='9' refY='5' markerWidth='{:.1f}' "
          "markerHeight='{:.1f}' markerUnits='userSpaceOnUse' orient='auto'>"
          "<path d='M0 1 10 5 0 9z' fill='{}'/></marker>\n",
          round, arrow(), arrow(), colour(round));
    }
    add("<rect width='100%' height='100%' fill='#ffffff'/>\n");
    draw_text(kPadding, 34, 20, "#1a1a1a", " font-weight='600'", topology_.name());
    draw_text(kPadding, 55, 12.5, graph_.connected ? "#555555" : "#b3261e", "", shape_line());
    draw_text(kPadding, 73, 12.5, "#555555", "", spectrum_line());
  }

  void draw_text(double x, double y, double size, const char* fill, const char* extra,
                 const std::string& text) {
    add("<text x='{:.1f}' y='{:.1f}' font-size='{:.1f}' fill='{}'{}>{}</text>\n", x, y, size, fill,
        extra, markup_text(text));
  }

  std::string shape_line() const {
    const auto& g = graph_;
    const std::string degree = g.degree_min == g.degree_max
                                   ? fmt::format("{}", g.degree_min)
                                   : fmt::format("{} to {}", g.degree_min, g.degree_max);
    return fmt::format("{} node{} · {} {}edge{} · {}degree {} · {}", topology_.nodes(),
                       topology_.nodes() == 1 ? "" : "s", g.edges, g.directed ? "directed " : "",
                       g.edges == 1 ? "" : "s", g.directed ? "in-" : "", degree,
                       g.connected ? "connected" : "not connected");
  }

  std::string spectrum_line() const {
    const Spectrum figures = spectrum(topology_);
    std::string line = fmt::format(
        "{}ρ {:.4g} · spectral gap {:.4g} · μ {:.4g}",
        topology_.time_varying() ? fmt::format("over one period of {} rounds: ", topology_.period())
                                 : "",
        std::abs(figures.rho) < 1e-6 ? 0.0 : figures.rho, figures.spectral_gap, figures.mu);
    if (graph_.symmetric && !topology_.time_varying() && topology_.nodes() > 1) {
      line += fmt::format(" · DCD: α < {:.3g}", figures.dcd_alpha_limit);
    }
    return line;
  }

  Round colours() const { return std::min<Round>(topology_.period(), kColours.size()); }
  double arrow() const { return std::max(4.0, kArrow * std::sqrt(fineness_)); }

  std::string pen(const Stroke& stroke) const {
    const double share = heaviest_ > 0 ? stroke.weight / heaviest_ : 0;
    return fmt::format("stroke='{}' stroke-width='{:.2f}' opacity='{:.2f}' fill='none'",
                       colour(stroke.round), (0.6 + 1.6 * share) * std::sqrt(fineness_),
                       (0.35 + 0.55 * share) * std::clamp(1.6 * fineness_, 0.12, 1.0));
  }

  void draw_stroke(const Stroke& stroke) {
    const bool tip = strokes_.size() <= kTooltipEdges;
    if (tip) {
      add("<g><title>{} {} {}: {:.4g}</title>", stroke.from, graph_.directed ? "→" : "–", stroke.to,
          stroke.weight);
    }
    if (internal::wraps_round(layout_, stroke.from, stroke.to)) {
      draw_stubs(stroke);
    } else if (graph_.directed) {
      draw_arrow(stroke);
    } else {
      const Point a = node_at(stroke.from);
      const Point b = node_at(stroke.to);
      add("<path d='M{:.1f} {:.1f} {:.1f} {:.1f}' {}/>", a.x, a.y, b.x, b.y, pen(stroke));
    }
    add("{}\n", tip ? "</g>" : "");
  }

  /// An edge that wraps round a torus leaves both borders.
  void draw_stubs(const Stroke& stroke) {
    for (const auto& [node, other] :
         {std::pair{stroke.from, stroke.to}, {stroke.to, stroke.from}}) {
      const Point at = node_at(node);
      const Point end = internal::stub_end(layout_, node, other, at);
      add("<path d='M{:.1f} {:.1f} {:.1f} {:.1f}' stroke-dasharray='3 3' {}/>", at.x, at.y, end.x,
          end.y, pen(stroke));
    }
  }

  void draw_arrow(const Stroke& stroke) {
    const internal::Bend b = bend(layout_, node_at(stroke.from), node_at(stroke.to));
    add("<path d='M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}' marker-end='url(#arrow{})' {}/>",
        b.from.x, b.from.y, b.control.x, b.control.y, b.to.x, b.to.y, stroke.round % colours(),
        pen(stroke));
  }

  void draw_nodes() {
    for (Rank node = 0; node < topology_.nodes(); ++node) {
      svg_ +=
          draw_node(layout_, place({}), node,
                    fmt::format("node {}, own weight {:.4g}", node, topology_.self_weight(node, 0)),
                    {"fill='#f4f7fb' stroke='#1f3a5f'", "fill='#1f3a5f'"});
    }
  }

  void draw_legend() {
    const double y = height_ - 18;
    if (strokes_.empty()) {
      return;
    }
    const bool even = heaviest_ - lightest_ < 1e-6;
    std::string text =
        even ? fmt::format("every edge weighs {:.4g}", heaviest_)
             : fmt::format("thin to thick: weights from {:.4g} to {:.4g}", lightest_, heaviest_);
    if (layout_.columns > 0 && topology_.name().starts_with("torus")) {
      text += " · dashed edges come back on the other side";
    }
    draw_text(kPadding, y, 12, "#555555", "", text);
    if (!topology_.time_varying()) {
      return;
    }
    double x = width_ - kPadding - 58 * static_cast<double>(colours());
    for (Round round = 0; round < colours(); ++round, x += 58) {
      add("<rect x='{:.1f}' y='{:.1f}' width='14' height='4' rx='2' fill='{}'/>", x, y - 6,
          colour(round));
      const bool more = topology_.period() > colours() && round + 1 == colours();
      draw_text(x + 18, y, 11, "#555555", "", fmt::format("t = {}{}", round, more ? "…" : ""));
    }
  }

  const Topology& topology_;
  GraphProperties graph_;
  Layout layout_;
  std::vector<Stroke> strokes_;
  double heaviest_ = 0;
  double lightest_ = 1;
  double fineness_ = 1;
  double width_ = 0;
  double height_ = 0;
  double left_ = 0;
  std::string svg_;
};

}  // namespace

std::string draw_svg(const Topology& topology) { return Drawing(topology).draw(); }

}  // namespace sotto

#include "graph_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <sotto/base/error.h>
#include <sotto/base/input_file.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>

#include "families.h"

namespace sotto::internal {
namespace {

constexpr double kSumTolerance = 1e-6;
constexpr std::size_t kShownCharacters = 40;

/// A damaged field, as far as it helps.
std::string shown(std::string_view text) {
  const std::string_view front = excerpt(text, kShownCharacters);
  return one_line(front) + (front.size() < text.size() ? "..." : "");
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view source, int nodes, std::optional<double> threshold)
      : text_(text), source_(source), given_nodes_(nodes), threshold_(threshold) {}

  FileGraph parse() {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) {
      text_.remove_prefix(kByteOrderMark.size());
    }
    read_header();
    for (std::string_view line; next_line(line);) {
      read_edge(line);
    }
    refuse_duplicates();
    graph_.nodes = given_nodes_ > 0 ? given_nodes_ : highest_ + 1;
    if (graph_.nodes == 0) {
      refuse(source_, "no edge", "without one the number of nodes must be given");
    }
    return collect();
  }

 private:
  struct Line {
    Arc arc;
    double weight = 0;
    std::size_t number = 0;
    bool trusted = true;  ///< its rating is high enough
  };
  enum Column : std::size_t { from, to, weight, rating, time, columns };
  static constexpr std::array<std::string_view, columns> kNames = {"from", "to", "weight", "rating",
                                                                   "time"};
  /// What published trust lists call the first two.
  static constexpr std::array<std::string_view, 2> kOtherNames = {"source", "target"};

  [[noreturn]] void refuse_field(std::string_view column, std::string_view value,
                                 std::string_view reason) const {
    refuse(fmt::format("{}, line {}, column {}", source_, line_, column), shown(value), reason);
  }

  /// The next line that is not blank.
  bool next_line(std::string_view& line) {
    while (!text_.empty()) {
      ++line_;
      const std::size_t end = text_.find('\n');
      line = trimmed(text_.substr(0, end));
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      if (!line.empty()) {
        return true;
      }
    }
    return false;
  }

  void read_header() {
    constexpr std::string_view kExpected =
        "the first line is from,to,weight, from,to or from,to,rating";
    std::string_view line;
    if (!next_line(line)) {
      refuse(source_, "an empty file", kExpected);
    }
    for (std::string_view field : split(line)) {
      const auto* const other = std::find(kOtherNames.begin(), kOtherNames.end(), field);
      if (other != kOtherNames.end()) {
        field = kNames[static_cast<std::size_t>(other - kOtherNames.begin())];
      }
      const auto* const name = std::find(kNames.begin(), kNames.end(), field);
      if (name == kNames.end() || std::count(order_.begin(), order_.end(), name - kNames.begin())) {
        refuse_field(fmt::to_string(order_.size() + 1), field, kExpected);
      }
      order_.push_back(static_cast<std::size_t>(name - kNames.begin()));
    }
    const auto has = [this](Column column) {
      return std::count(order_.begin(), order_.end(), column) > 0;
    };
    weighted_ = has(weight);
    if (!has(from) || !has(to) || (weighted_ && has(rating))) {
      refuse(fmt::format("{}, line {}", source_, line_), shown(line), kExpected);
    }
    if (threshold_ && !has(rating)) {
      refuse(fmt::format("{}, line {}", source_, line_), shown(line),
             "a threshold is one of ratings; the first line would be from,to,rating");
    }
  }

  /// The fields of a line; at most one more than a right line has.
  std::vector<std::string_view> split(std::string_view line) const {
    std::vector<std::string_view> fields;
    for (;;) {
      const std::size_t comma = line.find(',');
      fields.push_back(trimmed(line.substr(0, comma)));
      if (comma == std::string_view::npos || fields.size() > columns) {
        return fields;
      }
      line.remove_prefix(comma + 1);
    }
  }

  void read_edge(std::string_view line) {
    const auto fields = split(line);
    if (fields.size() != order_.size()) {
      refuse(fmt::format("{}, line {}", source_, line_), shown(line),
             fmt::format("a line has {} columns, as the header", order_.size()));
    }
    Line edge{{}, 0, line_, true};
    for (std::size_t i = 0; i < fields.size(); ++i) {
      switch (order_[i]) {
        case from:
          edge.arc.from = read_rank(kNames[from], fields[i]);
          break;
        case to:
          edge.arc.to = read_rank(kNames[to], fields[i]);
          break;
        case weight:
          edge.weight = read_weight(fields[i]);
          break;
        case rating:
          edge.trusted = trusts(read_rating(fields[i]));
          break;
        default:
          break;
      }
    }
    if (weighted_ && edge.arc.from != edge.arc.to && !(static_cast<float>(edge.weight) > 0)) {
      refuse_field(kNames[weight], fmt::to_string(edge.weight),
                   "an edge has a positive weight; leave out what is not heard");
    }
    lines_.push_back(edge);
  }

  Rank read_rank(std::string_view column, std::string_view field) {
    const auto rank = parse_number<Rank>(field);
    if (!rank) {
      refuse_field(column, field, "a rank is a whole number from 0");
    }
    const int limit = given_nodes_ > 0 ? given_nodes_ : kMaxNodes;
    if (*rank >= limit) {
      refuse_field(column, field, fmt::format("ranks go from 0 to {}", limit - 1));
    }
    highest_ = std::max(highest_, *rank);
    return *rank;
  }

  double read_weight(std::string_view field) const {
    const auto value = parse_number<double>(field, 0, 1);
    if (!value) {
      refuse_field(kNames[weight], field, "a weight is a number from 0 to 1, e.g. 0.25");
    }
    return *value;
  }

  double read_rating(std::string_view field) const {
    const auto value = parse_number<double>(field);
    if (!value || !std::isfinite(*value)) {
      refuse_field(kNames[rating], field, "a rating is a number, e.g. 8 or -2.5");
    }
    return *value;
  }

  bool trusts(double value) const { return threshold_ ? value >= *threshold_ : value > 0; }

  /// Among all lines, those that are not trusted too: they may say the opposite of one that is.
  void refuse_duplicates() {
    std::vector<Line> sorted = lines_;
    std::sort(sorted.begin(), sorted.end(), [](const Line& a, const Line& b) {
      return a.arc != b.arc ? a.arc < b.arc : a.number < b.number;
    });
    const auto twice = std::adjacent_find(
        sorted.begin(), sorted.end(), [](const Line& a, const Line& b) { return a.arc == b.arc; });
    if (twice != sorted.end()) {
      line_ = (twice + 1)->number;
      refuse_field("from,to", fmt::format("{},{}", twice->arc.from, twice->arc.to),
                   fmt::format("line {} has this edge already", twice->number));
    }
  }

  FileGraph collect() {
    graph_.self.resize(static_cast<std::size_t>(graph_.nodes));
    for (const Line& line : lines_) {
      if (!line.trusted) {
        continue;
      }
      if (line.arc.from == line.arc.to) {
        if (weighted_) {
          graph_.self[static_cast<std::size_t>(line.arc.from)] = line.weight;
        }
        continue;
      }
      graph_.arcs.push_back(line.arc);
      if (weighted_) {
        graph_.weights.push_back(line.weight);
      }
    }
    return std::move(graph_);
  }

  std::string_view text_;
  std::string_view source_;
  int given_nodes_ = 0;
  std::optional<double> threshold_;
  std::size_t line_ = 0;
  Rank highest_ = -1;
  bool weighted_ = false;
  std::vector<std::size_t> order_;  // the header's columns
  std::vector<Line> lines_;
  FileGraph graph_;
};

}  // namespace

FileGraph parse_graph(std::string_view text, std::string_view source, int nodes,
                      std::optional<double> threshold) {
  return Parser(text, source, nodes, threshold).parse();
}

std::string read_graph_text(const std::string& path) {
  auto text = read_input(path, kMaxGraphFileBytes);
  if (!text.ok()) {
    refuse("topology file", path,
           fmt::format("{}; its first line would be from,to,weight, from,to or from,to,rating",
                       text.status().message()));
  }
  return std::move(*text);
}

Weights file_weights(const FileGraph& graph, std::string_view source, bool lazy) {
  const auto n = static_cast<std::size_t>(graph.nodes);
  Weights weights;
  std::vector<double> sums(n);
  for (std::size_t k = 0; k < graph.arcs.size(); ++k) {
    const Arc& arc = graph.arcs[k];
    const double weight = lazy ? graph.weights[k] / 2 : graph.weights[k];
    weights.edges.push_back({arc.from, arc.to, weight});
    sums[static_cast<std::size_t>(arc.to)] += static_cast<double>(static_cast<float>(weight));
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!graph.self[i] && sums[i] > (lazy ? 0.5 : 1.0) + kSumTolerance) {
      refuse(source, fmt::format("node {}", i),
             fmt::format("the weights of what it hears sum to {:.6g}, more than 1; lower them, or "
                         "give its own weight on a line {},{},WEIGHT",
                         lazy ? 2 * sums[i] : sums[i], i, i));
    }
  }
  if (std::none_of(graph.self.begin(), graph.self.end(),
                   [](const auto& own) { return own.has_value(); })) {
    return weights;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double own = graph.self[i].value_or(0);
    weights.self.push_back(!graph.self[i] ? std::max(0.0, 1 - sums[i])
                           : lazy         ? (1 + own) / 2
                                          : own);
  }
  return weights;
}

}  // namespace sotto::internal

#include "graph_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <sotto/base/decoded_text.h>
#include <sotto/base/delimited_text.h>
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

constexpr std::string_view kExpectedHeader =
    "the first line is from,to,weight, from,to or from,to,rating, or an edge";

/// The content of a column. Columns behind `type` are passed over.
enum class Column : std::uint8_t { from, to, weight, rating, type, passed };

struct ColumnName {
  std::string_view name;
  Column column;
  bool published = false;  ///< other programs use this name
};

/// The names that sotto, SNAP, Gephi and published trust lists give them.
constexpr std::array kColumnNames = {
    ColumnName{"from", Column::from},
    ColumnName{"to", Column::to},
    ColumnName{"weight", Column::weight},
    ColumnName{"rating", Column::rating},
    ColumnName{"source", Column::from, true},
    ColumnName{"src", Column::from, true},
    ColumnName{"fromnodeid", Column::from, true},
    ColumnName{"target", Column::to, true},
    ColumnName{"dst", Column::to, true},
    ColumnName{"tonodeid", Column::to, true},
    ColumnName{"type", Column::type},
    ColumnName{"time", Column::passed},
    ColumnName{"timestamp", Column::passed},
    ColumnName{"id", Column::passed},
    ColumnName{"label", Column::passed},
    ColumnName{"timeset", Column::passed},
    ColumnName{"interval", Column::passed},
};

std::string_view name_of(Column column) {
  return std::ranges::find(kColumnNames, column, &ColumnName::column)->name;
}

/// The kinds of weights that KONECT's first line names behind "sym", "asym" or "bip".
constexpr std::array<std::string_view, 9> kKonectWeights = {
    "unweighted", "positive",      "posweighted", "signed",          "multisigned",
    "weighted",   "multiweighted", "dynamic",     "multiposweighted"};

/// "# Undirected graph: FILE" as SNAP puts it, or "% sym WEIGHTS" as KONECT does. Any other comment
/// is prose, which may speak of undirected graphs without this being one.
bool says_undirected(std::string_view comment) {
  const std::string words = small_letters(trimmed(comment.substr(1)));
  constexpr std::string_view kSnap = "undirected graph";
  if (words.starts_with(kSnap)) {
    const std::string_view rest = trimmed(std::string_view(words).substr(kSnap.size()));
    return rest.empty() || rest.starts_with(':') || rest.starts_with('(');
  }
  constexpr std::string_view kKonect = "sym ";
  return comment.front() == '%' && words.starts_with(kKonect) &&
         std::ranges::count(kKonectWeights,
                            trimmed(std::string_view(words).substr(kKonect.size()))) > 0;
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view source, int nodes, std::optional<double> threshold)
      : text_(text),
        source_(source),
        given_nodes_(nodes),
        threshold_(threshold),
        dialect_(find_dialect(text, kComments)),
        splitter_(dialect_, kMostFields) {}

  FileGraph parse() {
    skip_byte_order_mark(text_);
    if (text_.starts_with("%%MatrixMarket")) {
      refuse(source_, "a MatrixMarket file",
             "its edges are not a list; write them as from,to, a line each");
    }
    std::string_view line;
    if (!next_line(line)) {
      refuse(source_, "an empty file", kExpectedHeader);
    }
    if (!read_header(line)) {
      read_edge(line);
    }
    while (next_line(line)) {
      read_edge(line);
    }
    number_nodes();
    refuse_duplicates();
    if (graph_.nodes == 0) {
      refuse(source_, "no edge", "without one the number of nodes must be given");
    }
    return collect();
  }

 private:
  struct Line {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    double weight = 0;
    std::size_t number = 0;
    bool mirrored = false;  ///< an undirected edge's way back
    bool trusted = true;    ///< the edge's rating is high enough
  };
  static constexpr std::string_view kComments = "#%";
  static constexpr std::size_t kMostFields = 16;

  [[noreturn]] void refuse_line(std::string_view line, std::string_view reason) const {
    refuse(fmt::format("{}, line {}", source_, line_), shown(line), reason);
  }
  [[noreturn]] void refuse_field(std::string_view column, std::string_view value,
                                 std::string_view reason) const {
    refuse(fmt::format("{}, line {}, column {}", source_, line_, column), shown(value), reason);
  }

  /// The next line that is neither blank nor a comment.
  bool next_line(std::string_view& line) {
    while (take_line(text_, line)) {
      ++line_;
      line = trimmed(line);
      if (line.empty()) {
        continue;
      }
      if (kComments.find(line.front()) == std::string_view::npos) {
        above_ = false;
        return true;
      }
      // Below the first line that is none, a comment is about a part of the graph at most.
      undirected_ = undirected_ || (above_ && says_undirected(line));
    }
    return false;
  }

  const std::vector<std::string_view>& split(std::string_view line) {
    const auto& fields = splitter_.split(line);
    if (!splitter_.fault().empty()) {
      refuse_line(line, splitter_.fault());
    }
    return fields;
  }

  /// False where the line is an edge, so that there is no header: two columns are edges, a third is
  /// a weight, or a rating where a threshold asks for one or a time stands behind it.
  bool read_header(std::string_view line) {
    const auto& fields = split(line);
    const bool edge =
        fields.size() >= 2 && fields.size() <= 4 &&
        std::ranges::all_of(fields, [](std::string_view field) {
          return parse_number<double>(field.substr(field.starts_with('-') ? 1 : 0)).has_value();
        });
    if (edge) {
      published_ = true;
      order_ = {Column::from, Column::to};
      if (fields.size() > 2) {
        order_.push_back(threshold_ || fields.size() > 3 ? Column::rating : Column::weight);
      }
      if (fields.size() > 3) {
        order_.push_back(Column::passed);
      }
    } else {
      name_columns(fields);
    }
    weighted_ = has(Column::weight);
    if (!has(Column::from) || !has(Column::to) || (weighted_ && has(Column::rating))) {
      refuse_line(line, kExpectedHeader);
    }
    if (threshold_ && !has(Column::rating)) {
      refuse_line(line, "a threshold is one of ratings; the first line would be from,to,rating");
    }
    return !edge;
  }

  void name_columns(const std::vector<std::string_view>& fields) {
    for (const std::string_view field : fields) {
      const auto* const known =
          std::ranges::find(kColumnNames, small_letters(field), &ColumnName::name);
      if (known == kColumnNames.end() || (known->column != Column::passed && has(known->column))) {
        refuse_field(fmt::to_string(order_.size() + 1), field, kExpectedHeader);
      }
      order_.push_back(known->column);
      published_ = published_ || known->published;
    }
  }

  bool has(Column column) const { return std::ranges::count(order_, column) > 0; }

  void read_edge(std::string_view line) {
    const auto& fields = split(line);
    if (fields.size() != order_.size()) {
      refuse_line(line, fmt::format("a line has {} columns, as the first", order_.size()));
    }
    Line edge{.number = line_};
    bool both_ways = undirected_;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      switch (order_[i]) {
        case Column::from:
          edge.from = read_node(Column::from, fields[i]);
          break;
        case Column::to:
          edge.to = read_node(Column::to, fields[i]);
          break;
        case Column::weight:
          edge.weight = read_weight(fields[i]);
          break;
        case Column::rating:
          edge.trusted = trusts(read_rating(fields[i]));
          break;
        case Column::type:
          both_ways = read_type(fields[i]);
          break;
        case Column::passed:
          break;
      }
    }
    if (weighted_ && edge.from != edge.to && !(static_cast<float>(edge.weight) > 0)) {
      refuse_field(name_of(Column::weight), fmt::to_string(edge.weight),
                   "an edge has a positive weight; leave out what is not heard");
    }
    lines_.push_back(edge);
    if (both_ways && edge.from != edge.to) {
      std::swap(edge.from, edge.to);
      edge.mirrored = true;
      lines_.push_back(edge);
    }
  }

  /// A rank; or in a published list a number that only names a node.
  std::uint64_t read_node(Column column, std::string_view field) {
    const auto node = parse_number<std::uint64_t>(field);
    if (!node) {
      const bool whole = !field.empty() && field.find_first_not_of("0123456789") == field.npos;
      refuse_field(name_of(column), field,
                   whole ? "this number is too large" : "a rank is a whole number from 0");
    }
    const int limit = given_nodes_ > 0 ? given_nodes_ : kMostNodes;
    if (!published_ && *node >= static_cast<std::uint64_t>(limit)) {
      refuse_field(name_of(column), field, fmt::format("ranks go from 0 to {}", limit - 1));
    }
    nodes_.push_back(*node);
    return *node;
  }

  /// A number with a decimal mark that may be a comma where that sets no fields apart.
  std::optional<double> number_in(std::string_view field) const {
    std::string text(field);
    if (dialect_.separator != ',') {
      std::ranges::replace(text, ',', '.');
    }
    return parse_number<double>(text);
  }

  double read_weight(std::string_view field) const {
    const auto value = number_in(field);
    if (!value || !(*value >= 0 && *value <= 1)) {
      refuse_field(
          name_of(Column::weight), field,
          "a weight is a number from 0 to 1, e.g. 0.25; where it is none, leave the column "
          "out, or call it rating");
    }
    return *value;
  }

  double read_rating(std::string_view field) const {
    const auto value = number_in(field);
    if (!value || !std::isfinite(*value)) {
      refuse_field(name_of(Column::rating), field, "a rating is a number, e.g. 8 or -2.5");
    }
    return *value;
  }

  bool read_type(std::string_view field) const {
    const std::string type = small_letters(field);
    if (type != "directed" && type != "undirected") {
      refuse_field(name_of(Column::type), field, "it is Directed or Undirected");
    }
    return type == "undirected";
  }

  bool trusts(double value) const { return threshold_ ? value >= *threshold_ : value > 0; }

  /// Ranks are what they are; what only names nodes is numbered in ascending order.
  void number_nodes() {
    std::ranges::sort(nodes_);
    nodes_.erase(std::unique(nodes_.begin(), nodes_.end()), nodes_.end());
    std::uint64_t count = nodes_.empty() ? 0 : nodes_.back() + 1;
    if (published_) {
      count = nodes_.size();
      const int limit = given_nodes_ > 0 ? given_nodes_ : kMostNodes;
      if (count > static_cast<std::uint64_t>(limit)) {
        refuse(source_, fmt::format("{} nodes", count),
               fmt::format("{} are the most; take a part of them with ,cut=N", limit));
      }
      const auto rank_of = [this](std::uint64_t node) {
        return static_cast<std::uint64_t>(std::ranges::lower_bound(nodes_, node) - nodes_.begin());
      };
      for (Line& line : lines_) {
        line.from = rank_of(line.from);
        line.to = rank_of(line.to);
      }
    }
    graph_.nodes = given_nodes_ > 0 ? given_nodes_ : static_cast<int>(count);
  }

  /// An edge stands once; one that runs both ways may stand there both ways. Lines that are not
  /// trusted count too, as they may say the opposite of one that is; they are left out then.
  void refuse_duplicates() {
    const auto key = [](const Line& line) {
      return std::tuple(line.from, line.to, line.mirrored, line.number);
    };
    std::ranges::sort(lines_, {}, key);
    const auto same = [](const Line& a, const Line& b) { return a.from == b.from && a.to == b.to; };
    const auto twice = std::ranges::adjacent_find(lines_, [&](const Line& a, const Line& b) {
      return same(a, b) && !a.mirrored && !b.mirrored;
    });
    if (twice != lines_.end()) {
      line_ = (twice + 1)->number;
      refuse_field("from,to", fmt::format("{},{}", twice->from, twice->to),
                   fmt::format("line {} has this edge already", twice->number));
    }
    std::erase_if(lines_, [](const Line& line) { return !line.trusted; });
    lines_.erase(std::unique(lines_.begin(), lines_.end(), same), lines_.end());
    std::ranges::stable_sort(lines_, {}, &Line::number);
  }

  FileGraph collect() {
    graph_.self.resize(static_cast<std::size_t>(graph_.nodes));
    // Programs that know no mixing write 1 for every edge.
    const bool ones = published_ && std::ranges::all_of(
                                        lines_, [](const Line& line) { return line.weight == 1; });
    weighted_ = weighted_ && !ones;
    for (const Line& line : lines_) {
      if (line.from == line.to) {
        if (weighted_) {
          graph_.self[line.from] = line.weight;
        }
        continue;
      }
      graph_.arcs.push_back({static_cast<Rank>(line.from), static_cast<Rank>(line.to)});
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
  Dialect dialect_;
  FieldSplitter splitter_;
  std::size_t line_ = 0;
  bool weighted_ = false;
  bool published_ = false;   // nodes have numbers that are names
  bool undirected_ = false;  // as a comment says
  bool above_ = true;        // nothing but comments was read
  std::vector<Column> order_;
  std::vector<std::uint64_t> nodes_;  // all that were named
  std::vector<Line> lines_;
  FileGraph graph_;
};

}  // namespace

FileGraph parse_graph(std::string_view text, std::string_view source, int nodes,
                      std::optional<double> threshold) {
  return Parser(text, source, nodes, threshold).parse();
}

std::string read_graph_text(const std::string& path) {
  auto bytes = read_input(path, kMostGraphFileBytes);
  if (!bytes.ok()) {
    const std::string& why = bytes.status().message();
    std::error_code unknown;
    const auto type = std::filesystem::status(path, unknown).type();
    const bool missing = type == std::filesystem::file_type::not_found ||
                         type == std::filesystem::file_type::directory;
    refuse("topology file", path, missing ? fmt::format("{}; {}", why, kExpectedHeader) : why);
  }
  return decode_text(std::move(*bytes), path, kMostGraphFileBytes).text;
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

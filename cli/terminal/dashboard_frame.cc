#include "dashboard_frame.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/text.h>
#include <sotto/observe/figures.h>
#include <sotto/study/quality.h>
#include <sotto/study/units.h>

#include "progress_line.h"

namespace sotto::cli {
namespace {

/// The left half: what a row of a node takes.
constexpr std::size_t kNodeColumns = 60;
constexpr std::size_t kCurveColumns = 24;
/// Rows that are neither of nodes nor of links, and the one below on which the cursor stands.
constexpr std::size_t kOtherRows = 8;

/// The first `columns` characters.
std::string cut(const std::string& text, std::size_t columns) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (begins && seen++ == columns) {
      return text.substr(0, i);
    }
  }
  return text;
}

std::string curve(const char* name, const Series& series, const std::string& first,
                  const std::string& last) {
  return series.empty() ? fmt::format("{:<10} –", name)
                        : fmt::format("{:<10} {:>9} {:<{}} {:<9}", name, first,
                                      series.drawn(kCurveColumns), kCurveColumns, last);
}

std::string number(double value) { return fmt::format("{:.4g}", value); }

std::string time_left(const DashboardState& state) {
  const Round here = state.done - std::min(state.done, state.start.done);
  if (here == 0 || state.elapsed_s <= 0) {
    return "";
  }
  const double rate = static_cast<double>(here) / state.elapsed_s;
  const auto left = static_cast<double>(state.start.rounds - state.done);
  return fmt::format("{:.4g} rounds/s, {} left", rate, study::duration_text(left / rate));
}

/// Beside what was sent: what it saves.
std::string saving(const RunEvaluation& last) {
  const double ratio = last.allreduce_bytes / last.point.bytes_per_node;
  return std::isfinite(ratio) && ratio > 0
             ? fmt::format("   {:<10} {:>9} = {:.1f} × what is sent", "all-reduce",
                           study::amount(last.allreduce_bytes), ratio)
             : "";
}

std::string health_line(const RunEvaluation& last) {
  std::string text =
      fmt::format("{:<10} {:>9}", "sent/node", study::amount(last.point.bytes_per_node));
  if (const auto& sample = last.compression) {
    text += fmt::format("   compression leaves out {:.3g} %", 100 * error_ratio(*sample));
    if (std::isfinite(sample->bound)) {
      text += fmt::format(", {:.3g} % of what its contract allows", 100 * contract_use(*sample));
    }
  }
  std::uint64_t most_stale = 0;
  std::uint64_t bad = 0;
  for (const NodeStanding& node : last.nodes) {
    most_stale = std::max(most_stale, node.counters.most_stale);
    bad += node.counters.bad_frames;
  }
  if (most_stale > 0) {
    text += fmt::format("   staleness {} at most", most_stale);
  }
  if (bad > 0) {
    text += fmt::format("   {} refused", study::counted(bad, "frame"));
  }
  return text;
}

std::string node_row(const NodeStanding& node) {
  const double wall = std::max(node.wall_s, 1e-9);
  const auto share = [&](double seconds) { return fmt::format("{:.0f} %", 100 * seconds / wall); };
  return fmt::format(
      "{:>5} {:>9} {:>8} {:>8} {:>10} {:>8}", node.node, share(node.compute_s),
      share(node.times.algorithm_s), share(node.times.wait_s),
      node.compression ? fmt::format("{:.3g}", std::sqrt(node.compression->error)) : "–",
      node.counters.mass ? fmt::format("{:.4g}", *node.counters.mass) : "–");
}

/// Bytes sent over a link at the evaluation before; 0 when there was none.
std::uint64_t bytes_before(const DashboardState& state, const LinkTraffic& link) {
  if (!state.before || static_cast<std::size_t>(link.from) >= state.before->nodes.size()) {
    return 0;
  }
  for (const LinkTraffic& old : state.before->nodes[static_cast<std::size_t>(link.from)].traffic) {
    if (old.to == link.to) {
      return old.bytes;
    }
  }
  return 0;
}

std::string link_row(const DashboardState& state, const LinkTraffic& link) {
  const double since = state.before ? state.before->point.time_s : 0;
  const double seconds = std::max(state.last->point.time_s - since, 1e-9);
  const std::uint64_t bytes = link.bytes - std::min(link.bytes, bytes_before(state, link));
  return fmt::format("{:>4} → {:<4} {:>10}/s  {}", link.from, link.to,
                     study::amount(static_cast<double>(bytes) / seconds),
                     bytes > 0 ? "active" : "idle");
}

/// At most `rows`; where there are more, the last says how many.
std::vector<std::string> fitting(std::vector<std::string> lines, std::size_t rows,
                                 const char* what) {
  if (lines.size() > rows && rows > 0) {
    const std::size_t more = lines.size() - rows + 1;
    lines.resize(rows);
    lines.back() = fmt::format("  … {} more", study::counted(more, what));
  }
  return lines;
}

void add_tables(const DashboardState& state, std::size_t rows, std::vector<std::string>& lines) {
  std::vector<std::string> nodes;
  std::vector<std::string> links;
  for (const NodeStanding& node : state.last->nodes) {
    nodes.push_back(node_row(node));
    for (const LinkTraffic& link : node.traffic) {
      links.push_back(link_row(state, link));
    }
  }
  nodes = fitting(std::move(nodes), rows, "node");
  links = fitting(std::move(links), rows, "link");
  lines.push_back(fmt::format("{:<{}}{}",
                              fmt::format("{:>5} {:>9} {:>8} {:>8} {:>10} {:>8}", "node",
                                          "gradients", "codec", "waiting", "left out", "mass"),
                              kNodeColumns, "  link          sent  state"));
  for (std::size_t row = 0; row < std::max(nodes.size(), links.size()); ++row) {
    lines.push_back(fmt::format("{:<{}}{}", row < nodes.size() ? nodes[row] : "", kNodeColumns,
                                row < links.size() ? links[row] : ""));
  }
}

}  // namespace

std::vector<std::string> dashboard_lines(const DashboardState& state, const TerminalSize& size) {
  const auto columns = static_cast<std::size_t>(std::max(1, size.columns));
  const auto rows = static_cast<std::size_t>(std::max(1, size.rows));
  std::vector<std::string> lines;
  lines.push_back(one_line(state.title));
  lines.push_back(fmt::format("{} round {}/{}  {}",
                              progress_bar(state.done, state.start.rounds, 42), state.done,
                              state.start.rounds, time_left(state)));
  lines.push_back(curve("loss", state.loss, number(state.loss.first()), number(state.loss.last())) +
                  "   " +
                  curve("consensus", state.consensus, number(state.consensus.first()),
                        number(state.consensus.last())));
  const study::Quality& quality =
      state.last ? study::quality_at(state.last->point) : study::kAccuracy;
  lines.push_back(curve(quality.heading, state.quality,
                        quality_text(quality, state.quality.first()),
                        quality_text(quality, state.quality.last())) +
                  (state.last ? saving(*state.last) : ""));
  if (state.last) {
    lines.push_back(health_line(*state.last));
    if (!state.last->nodes.empty() && rows > kOtherRows) {
      lines.emplace_back();
      add_tables(state, rows - kOtherRows, lines);
    }
  }
  lines.resize(std::min(lines.size(), rows - 1));
  for (std::string& line : lines) {
    line = cut(line, columns);
  }
  return lines;
}

}  // namespace sotto::cli

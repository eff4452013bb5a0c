// What a run shows on a terminal: the lines of the dashboard, and a real terminal's screen.
#include <algorithm>
#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "cli/program.h"
#include "cli/terminal.h"
#include "terminal/dashboard_frame.h"
#include "terminal/series.h"

namespace sotto::test::dashboard_test {

using cli::DashboardState;
using cli::Series;

namespace {

std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

RunEvaluation evaluation_of(int nodes) {
  RunEvaluation evaluation;
  evaluation.point = {.round = 10, .time_s = 2, .loss = 0.5, .accuracy = 0.9};
  for (Rank rank = 0; rank < nodes; ++rank) {
    NodeStanding node;
    node.wall_s = 2;
    node.compute_s = 1;
    node.counters.mass = 1.25;
    node.compression = CompressionSample{.signal = 4, .error = 1, .bound = 2};
    node.traffic = {{rank, (rank + 1) % nodes, 4000, 10}};
    evaluation.nodes.push_back(std::move(node));
  }
  evaluation.compression = compression_of(evaluation.nodes);
  return evaluation;
}

bool any(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return contains(line, part); });
}

Arguments dashboard_train(const Arguments& more) {
  Arguments all = command(small_train({"--eval-every", "5", "--progress", "auto"}));
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

TEST_CASE("a curve keeps to its columns and to bounded memory, and ends at the newest value") {
  Series series;
  CHECK(series.drawn(10).empty());
  series.add(std::nan(""));
  CHECK(series.empty());
  series.add(5);
  CHECK(series.drawn(10) == "▁");
  for (int i = 0; i < 100'000; ++i) {
    series.add(i);
  }
  CHECK(series.first() == 5);
  CHECK(series.last() == 99'999);
  CHECK(columns_of(series.drawn(24)) == 24);
  CHECK(series.drawn(24).ends_with("█"));
  CHECK(series.drawn(24).starts_with("▁"));
}

TEST_CASE("the dashboard fits its terminal, however many nodes and links there are") {
  for (const int nodes : {2, 8, 500}) {
    for (const cli::TerminalSize size : {cli::TerminalSize{100, 12}, {160, 50}, {40, 5}}) {
      CAPTURE(nodes);
      CAPTURE(size.rows);
      DashboardState state;
      state.title = "a title";
      state.start = {.nodes = nodes, .rounds = 100};
      state.done = 10;
      state.elapsed_s = 1;
      state.last = evaluation_of(nodes);
      state.loss.add(0.5);
      const auto lines = cli::dashboard_lines(state, size);
      CHECK(lines.size() < static_cast<std::size_t>(size.rows));
      for (const std::string& line : lines) {
        CHECK(columns_of(line) <= static_cast<std::size_t>(size.columns));
      }
      CHECK(any(lines, "a title"));
      CHECK(any(lines, "round 10/100") == (size.columns >= 100));
    }
  }
  DashboardState state;
  state.start = {.nodes = 3, .rounds = 100};
  state.last = evaluation_of(3);
  const auto lines = cli::dashboard_lines(state, {120, 30});
  CHECK(any(lines, "50 % of what its contract allows"));
  CHECK(any(lines, "1 → 2"));
  CHECK(any(lines, "2 kB/s  active"));
  CHECK(any(lines, "1.25"));
  CHECK(any(cli::dashboard_lines(state, {120, 10}), "… 2 nodes more"));
}

TEST_CASE("on a wide terminal a run redraws its dashboard in place and leaves it whole") {
  OnTerminal program(dashboard_train({"--rounds", "20"}), 120, 40);
  CHECK(program.wait() == 0);
  const Screen screen = program.screen();
  CHECK(screen.unknown().empty());  // no mode is ever set that would have to be reset
  CHECK(program.modes_kept());
  CHECK(screen.widest() <= 120);
  CHECK(screen.column() == 0);
  const auto lines = screen.lines();
  std::size_t titles = 0;
  for (const std::string& line : lines) {
    titles += line.starts_with("sotto train") ? 1U : 0U;
  }
  CHECK(titles == 1);
  CHECK(any(lines, "[========================================] round 20/20"));
  CHECK(any(lines, "3 → 0"));
  CHECK(any(lines, "4 nodes, 20 rounds"));  // the summary stands below
}

TEST_CASE("a signal ends the dashboard without a trace of it in the terminal's state") {
  for (const std::string transport : {"inproc", "zmq"}) {
    if (!has_transport(transport)) {
      continue;
    }
    CAPTURE(transport);
    OnTerminal program(dashboard_train({"--rounds", "1000000", "--transport", transport}), 120, 40);
    REQUIRE(program.wait_for("active"));
    program.send(SIGINT);
    CHECK(program.wait() == 130);
    const Screen screen = program.screen();
    CHECK(screen.unknown().empty());
    CHECK(program.modes_kept());
    CHECK(screen.column() == 0);
    CHECK(any(screen.lines(), "interrupted"));
  }
}

TEST_CASE("a narrow terminal gets a bar, and a dashboard only where there is room") {
  OnTerminal narrow(dashboard_train({"--rounds", "20"}), 80, 24);
  CHECK(narrow.wait() == 0);
  CHECK(contains(narrow.text(), "round 20/20"));
  CHECK_FALSE(contains(narrow.text(), "\x1b[J"));
  CHECK(any(narrow.screen().lines(), "accuracy"));

  const auto refused = run(small_train({"--progress", "dashboard"}));
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "--progress"));
  CHECK(run(small_train({"--progress", "loud"})).status == 2);
  const auto quiet = run(small_train({"--progress", "dashboard", "--quiet", "--rounds", "3"}));
  CHECK(quiet.status == 0);
  CHECK(quiet.err.empty());
  CHECK(run(small_train({"--progress", "loud", "--quiet"})).status == 2);
  const auto none = run(small_train({"--progress", "none", "--rounds", "3"}));
  CHECK_FALSE(contains(none.out, "consensus"));
  CHECK(contains(none.out, "3 rounds"));
  CHECK(contains(run(small_train({"--rounds", "3"})).out, "consensus"));
}

}  // namespace sotto::test::dashboard_test

#include "dashboard.h"

#include <unistd.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/base/elapsed.h>
#include <sotto/base/write_all.h>
#include <sotto/console/signals.h>

#include "terminal.h"

namespace sotto::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenDraws = 100ms;

}  // namespace

Dashboard::Dashboard(std::string title) { state_.title = std::move(title); }

void Dashboard::began(const RunStart& start) {
  state_.start = start;
  state_.done = start.done;
  began_ = Clock::now();
  draw();
}

void Dashboard::round_done(Round done) {
  state_.done = done;
  if (Clock::now() - drawn_ >= kBetweenDraws) {
    draw();
  }
}

void Dashboard::evaluated(const RunEvaluation& evaluation) {
  state_.before = std::exchange(state_.last, evaluation);
  state_.loss.add(evaluation.point.loss);
  state_.quality.add(quality_of(evaluation.point));
  state_.consensus.add(evaluation.point.consensus_distance);
  if (evaluation.point.round == state_.start.rounds || Clock::now() - drawn_ >= kBetweenDraws) {
    draw();
  }
}

void Dashboard::warning(const std::string& /*text*/) {
  height_ = 0;  // who prints it does so below
}

void Dashboard::draw() {
  if (console::stop_requested() && !std::exchange(stopping_, true)) {
    height_ = 0;
  }
  drawn_ = Clock::now();
  state_.elapsed_s = seconds_since(began_);
  const auto size = terminal_behind(STDERR_FILENO).value_or(TerminalSize());
  const auto lines = dashboard_lines(state_, size);
  // One write: a frame is never half drawn for long, whatever ends the process.
  std::string frame = height_ > 0 ? fmt::format("\x1b[{}A\r", height_) : "\r";
  for (const std::string& line : lines) {
    frame += line;
    frame += "\x1b[K\n";
  }
  frame += "\x1b[J";
  height_ = lines.size();
  (void)write_all(STDERR_FILENO, frame);  // but to a terminal that is gone
}

}  // namespace sotto::cli

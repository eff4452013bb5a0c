#include "progress_line.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "terminal.h"

namespace sotto::cli {
namespace {

constexpr std::size_t kWidestBar = 42;
constexpr std::size_t kNarrowestBar = 12;

}  // namespace

std::string progress_bar(std::uint64_t done, std::uint64_t total, std::size_t columns) {
  const std::size_t inner = columns - std::min<std::size_t>(columns, 2);
  const double share = total == 0 ? 0 : static_cast<double>(done) / static_cast<double>(total);
  const auto filled = static_cast<std::size_t>(std::min(1.0, share) * static_cast<double>(inner));
  return fmt::format("[{:=<{}}{:<{}}]", "", filled, "", inner - filled);
}

std::string bar_line(std::uint64_t done, std::uint64_t total, std::string_view label, int columns) {
  const auto room = static_cast<std::size_t>(std::max(columns - 1, 0));
  const std::size_t beside = label.size() + 1;
  if (room < beside + kNarrowestBar) {
    return std::string(label.substr(0, room));
  }
  return fmt::format("{} {}", progress_bar(done, total, std::min(kWidestBar, room - beside)),
                     label);
}

void ProgressLine::bar(std::uint64_t done, std::uint64_t total, std::string_view label) {
  const auto per_mille = static_cast<int>(1000 * static_cast<double>(done) /
                                          static_cast<double>(std::max<std::uint64_t>(total, 1)));
  if (!wanted_ || (drawn_ && per_mille == per_mille_)) {
    return;
  }
  const auto terminal = terminal_behind(STDERR_FILENO);
  if (terminal && text(bar_line(done, total, label, terminal->columns))) {
    per_mille_ = per_mille;
  }
}

bool ProgressLine::text(std::string_view text) {
  const auto terminal = wanted_ ? terminal_behind(STDERR_FILENO) : std::nullopt;
  if (!terminal) {
    return false;
  }
  const auto room = static_cast<std::size_t>(std::max(terminal->columns - 1, 0));
  fmt::print(stderr, "\r{}\x1b[K", text.substr(0, room));
  std::fflush(stderr);
  drawn_ = true;
  return true;
}

void ProgressLine::clear() {
  if (drawn_) {
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
    drawn_ = false;
  }
}

}  // namespace sotto::cli

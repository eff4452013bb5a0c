// A line of standard error that is drawn over and over where a terminal can do that, never wider
// than the terminal is at that moment.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sotto::cli {

/// [=====>    ], `columns` wide.
std::string progress_bar(std::uint64_t done, std::uint64_t total, std::size_t columns);

/// A bar before `label`, 42 columns wide or as wide as there is room for: together they stay below
/// `columns`, as a terminal wraps a line that fills it. Without room for a bar that says anything
/// the label alone, cut.
std::string bar_line(std::uint64_t done, std::uint64_t total, std::string_view label, int columns);

class ProgressLine {
 public:
  /// `wanted`: false shows nothing, whatever there is.
  explicit ProgressLine(bool wanted) : wanted_(wanted) {}
  /// Clears it.
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Draws a bar with its label in place of what stands there; nothing where no terminal can. Not
  /// more often than the bar would change.
  void bar(std::uint64_t done, std::uint64_t total, std::string_view label);
  /// Draws `text`, of ASCII characters, cut to the terminal. False where no terminal can.
  bool text(std::string_view text);
  /// Leaves the line empty.
  void clear();

 private:
  bool wanted_;
  bool drawn_ = false;
  int per_mille_ = -1;  ///< share of the bar that was drawn last
};

}  // namespace sotto::cli

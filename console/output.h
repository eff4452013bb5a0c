// Where a command's words go: tables and lines for people on standard output, the result as JSON in
// a file or on standard output (then nothing else goes there), and what went wrong on standard
// error. Names, paths and messages may hold any bytes: what comes out is valid text that steers no
// terminal. One thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/json.h>
#include <sotto/console/command.h>

namespace sotto::console {

/// Says a line on standard error, in the program's name.
void say(std::string_view text);
/// Says that something is not as it should be, though it goes on.
void warn(std::string_view text);

/// Writes to standard output at once. A failure there stays in its error flag: `main` says so in
/// the end, in the same words for all commands, and what a command does besides still counts.
void print_text(std::string_view text);

class Output {
 public:
  /// Refuses (Error) a --json file that could not be written, before any work is done.
  explicit Output(const OutputOptions& options);

  /// True when words for people are wanted on standard output.
  bool talks() const { return talks_; }
  /// Prints a line for people.
  void line(std::string_view text) const;
  /// Prints columns aligned under their titles.
  void table(const std::vector<std::string>& titles,
             const std::vector<std::vector<std::string>>& rows) const;
  /// Writes the result where --json asked for it; nothing without --json. Throws
  /// std::runtime_error when it cannot be written.
  void json(const Json& result) const;

 private:
  std::string json_;
  bool talks_ = true;
};

}  // namespace sotto::console

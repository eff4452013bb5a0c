// Lines and numbers of a text file, with the line number for messages.
//
// Private to the loaders. One thread at a time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace sotto {

/// Walks over the lines of a file that it read whole. Ends of lines are "\n" or "\r\n"; a
/// byte-order mark is skipped.
class TextLines {
 public:
  /// Throws Error for a file that cannot be read or that is too long.
  explicit TextLines(const std::filesystem::path& path);

  /// Goes to the next line that is not blank; false at the end.
  bool next();
  /// The line without its end; valid as long as this object.
  std::string_view line() const { return line_; }
  const std::filesystem::path& path() const { return path_; }

  /// Throws Error with the file, the current line's number and `reason`.
  [[noreturn]] void refuse(std::string_view reason) const;
  /// The finite number that `text` is, one that fits a 32-bit float; `what` names it in messages.
  double number(std::string_view text, std::string_view what) const;

 private:
  std::filesystem::path path_;
  std::string content_;
  std::string_view rest_;
  std::string_view line_;
  std::size_t number_ = 0;
};

/// The number that `text` is, in full; false if it is none.
bool parse_number(std::string_view text, double& value);

}  // namespace sotto

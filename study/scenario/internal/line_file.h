// A text file that is read line by line within bounds: traces of links, of nodes, of what happens
// to them. Blank lines, and lines that begin with #, are passed over. Errors name file and line.
//
// One thread at a time. Owns the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sotto::study {

class LineFile {
 public:
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  static constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20U;
  static constexpr std::size_t kMostLines = 4'000'000;

  /// Throws Error where the file cannot be read, has more than kMostBytes, or is empty; `holds`
  /// says what belongs into it.
  LineFile(const std::string& path, std::string_view holds);

  /// Goes to the next line; false behind the last. Throws Error behind line kMostLines.
  bool next();
  /// The line, without its end and blanks round it.
  std::string_view line() const { return line_; }
  /// The parts of the line between commas, without blanks at their ends.
  std::vector<std::string_view> fields() const;
  /// The number that a field is, `least` at least and finite. Throws Error that says so; `what` is
  /// how messages call it.
  double number(std::string_view field, std::string_view what, double least = 0) const;
  /// "FILE:LINE"
  std::string place() const;
  /// Throws Error about the line.
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  std::string path_;
  std::string text_;
  std::string_view rest_;  ///< text after the current line
  std::size_t number_ = 0;
  std::string_view line_;
};

}  // namespace sotto::study

// A text file's content, and its lines and numbers with the line number for messages.
//
// Private to the loaders. A TextFile is immutable and may be shared; TextLines are of one thread at
// a time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <sotto/base/decoded_text.h>

namespace sotto {

/// A file that was read whole, and decoded.
struct TextFile {
  std::filesystem::path path;
  DecodedText content;
};

/// Throws Error for a file that cannot be read, is too long, or is no text.
TextFile read_text_file(const std::filesystem::path& path);

/// Walks over the lines of a file.
class TextLines {
 public:
  /// `file` must outlive this object.
  explicit TextLines(const TextFile& file) : file_(file), rest_(file.content.text) {}

  /// Goes to the next line that is not blank; false at the end.
  bool next();
  /// The line without its end; valid as long as the file.
  std::string_view line() const { return line_; }
  /// The line's number, from 1.
  std::size_t number() const { return number_; }
  const std::filesystem::path& path() const { return file_.path; }

  /// Throws Error with the file, the current line's number and `reason`.
  [[noreturn]] void refuse(std::string_view reason) const;
  /// The finite number that `text` is, one that fits a 32-bit float; `what` names it in messages.
  double number(std::string_view text, std::string_view what) const;

 private:
  const TextFile& file_;
  std::string_view rest_;
  std::string_view line_;
  std::size_t number_ = 0;
};

}  // namespace sotto

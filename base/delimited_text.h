// Lines of fields: what sets fields apart, and a line taken apart. For tables and lists of edges.
//
// Fields may stand in double quotes, a doubled quote standing for one; blanks around fields do not
// count. Pure functions but for the splitter, which one thread uses at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace sotto {

/// Cuts off the bytes EF BB BF that some editors put in front of UTF-8. False where there are none.
bool skip_byte_order_mark(std::string_view& text);

/// Cuts the next line off `rest`, without its end: "\n", "\r\n", or "\r" alone. False at the end.
bool take_line(std::string_view& rest, std::string_view& line);

/// How a table's columns are separated.
struct Dialect {
  char separator = ',';  ///< ',', ';', '|', a tab; a blank stands for any number of blanks and tabs

  /// "comma", "semicolon", "tab", "bar", "blanks"
  std::string_view name() const;
};

/// The separator of a text, by its first kilobyte, or its first two lines where those are longer:
/// it stands in the first line, and as often in most of the others. Lines that begin with one of
/// `comments` are passed over. A text of one column has commas.
Dialect find_dialect(std::string_view text, std::string_view comments = "");

/// Takes lines apart.
class FieldSplitter {
 public:
  /// More fields than `most` are a fault.
  FieldSplitter(Dialect dialect, std::size_t most) : dialect_(dialect), most_(most) {}

  /// The fields of `line`, which must outlive their use; valid until the next call.
  const std::vector<std::string_view>& split(std::string_view line);
  /// The fault of the last line; empty when it has none.
  const std::string& fault() const { return fault_; }

 private:
  bool separates(char c) const;
  std::string_view without_blanks(std::string_view text) const;
  std::string_view take_quoted(std::string_view& rest);

  Dialect dialect_;
  std::size_t most_;
  std::string fault_;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // fields that had doubled quotes
};

}  // namespace sotto

#include "text_lines.h"

#include <cstdint>

#include <fmt/format.h>

#include <sotto/base/delimited_text.h>
#include <sotto/base/error.h>
#include <sotto/base/text.h>

#include "field_value.h"
#include "file.h"

namespace sotto {
namespace {

constexpr std::uint64_t kMostTableBytes = std::uint64_t{1} << 29;

}  // namespace

TextFile read_text_file(const std::filesystem::path& path) {
  return {path, decode_text(read_file(path, kMostTableBytes), path.string(), kMostTableBytes)};
}

bool TextLines::next() {
  while (take_line(rest_, line_)) {
    ++number_;
    if (line_.find('\0') != std::string_view::npos) {
      refuse("a byte of 0, which no text has; is the file damaged?");
    }
    if (!trimmed(line_).empty()) {
      return true;
    }
  }
  return false;
}

void TextLines::refuse(std::string_view reason) const {
  refuse_file(file_.path, fmt::format("line {}", number_), reason);
}

double TextLines::number(std::string_view text, std::string_view what) const {
  const FieldValue value = value_of(text);
  if (value.kind != FieldKind::number || value.mark == ',') {
    refuse(fmt::format(
        "{}: a finite number is expected; '{}' {}", what, excerpt(text),
        value.mark == ',' ? "has a decimal comma; write a point" : why_no_number(text)));
  }
  return value.number;
}

}  // namespace sotto

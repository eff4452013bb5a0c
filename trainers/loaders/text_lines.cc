#include "text_lines.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <system_error>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>

#include "file.h"

namespace sotto {
namespace {

constexpr std::uint64_t kMaxTableBytes = std::uint64_t{1} << 29;

}  // namespace

bool parse_number(std::string_view text, double& value) {
  const auto number = parse_number<double>(text);
  value = number.value_or(value);
  return number.has_value();
}

TextLines::TextLines(const std::filesystem::path& path)
    : path_(path), content_(read_file(path, kMaxTableBytes)), rest_(content_) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (rest_.starts_with(kByteOrderMark)) {
    rest_.remove_prefix(kByteOrderMark.size());
  }
}

bool TextLines::next() {
  while (!rest_.empty()) {
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
    ++number_;
    if (line_.ends_with('\r')) {
      line_.remove_suffix(1);
    }
    if (!trimmed(line_).empty()) {
      return true;
    }
  }
  return false;
}

void TextLines::refuse(std::string_view reason) const {
  refuse_file(path_, fmt::format("line {}", number_), reason);
}

double TextLines::number(std::string_view text, std::string_view what) const {
  double value = 0;
  if (!parse_number(text, value)) {
    refuse(fmt::format("{}: a finite number is expected; found '{}'", what, excerpt(text)));
  }
  if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) {
    refuse(fmt::format("{}: '{}' does not fit a 32-bit float", what, excerpt(text)));
  }
  return value;
}

}  // namespace sotto

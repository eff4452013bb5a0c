#include <sotto/study/scenario/internal/line_file.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/delimited_text.h>
#include <sotto/base/error.h>
#include <sotto/base/input_file.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>

namespace sotto::study {

LineFile::LineFile(const std::string& path, std::string_view holds) : path_(path) {
  auto text = read_input(path, kMostBytes);
  if (!text.ok() || text->empty()) {
    throw Error(fmt::format("'{}' cannot be read, or is empty: {}; {}", path,
                            text.ok() ? "nothing is in it" : text.status().message(), holds));
  }
  text_ = std::move(*text);
  rest_ = text_;
  (void)skip_byte_order_mark(rest_);
}

bool LineFile::next() {
  while (take_line(rest_, line_)) {
    if (++number_ > kMostLines) {
      refuse(fmt::format("a file has {} lines at most", kMostLines));
    }
    line_ = trimmed(line_);
    if (!line_.empty() && line_.front() != '#') {
      return true;
    }
  }
  return false;
}

std::vector<std::string_view> LineFile::fields() const {
  std::vector<std::string_view> fields;
  for (std::size_t from = 0; from <= line_.size();) {
    const std::size_t comma = std::min(line_.find(',', from), line_.size());
    fields.push_back(trimmed(line_.substr(from, comma - from)));
    from = comma + 1;
  }
  return fields;
}

double LineFile::number(std::string_view field, std::string_view what, double least) const {
  const auto found = parse_number<double>(field);
  if (!found || !(*found >= least) || !std::isfinite(*found)) {
    refuse(fmt::format("'{}' is no {}: a number, {:g} at least", printable(excerpt(field)), what,
                       least));
  }
  return *found;
}

std::string LineFile::place() const { return fmt::format("{}:{}", path_, number_); }

void LineFile::refuse(std::string_view why) const {
  throw Error(fmt::format("{}: {}", place(), why));
}

}  // namespace sotto::study

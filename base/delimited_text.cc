#include <sotto/base/delimited_text.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/text.h>

namespace sotto {
namespace {

constexpr std::size_t kSampleHead = 1024;

/// In the order in which they win where several would do: what is rarest within fields comes first.
constexpr std::array kSeparators = {'\t', ';', ',', '|'};

/// How often `separator` stands outside of quotes.
std::size_t count_of(std::string_view line, char separator) {
  std::size_t count = 0;
  bool quoted = false;
  for (const char c : line) {
    quoted = quoted != (c == '"');
    count += !quoted && c == separator ? 1U : 0U;
  }
  return count;
}

/// Words between blanks.
std::size_t count_words(std::string_view line) {
  std::size_t words = 0;
  bool blank = true;
  for (const char c : line) {
    const bool now = c == ' ' || c == '\t';
    words += blank && !now ? 1U : 0U;
    blank = now;
  }
  return words;
}

/// The lines by which a separator is found.
std::vector<std::string_view> sample_of(std::string_view text, std::string_view comments) {
  std::vector<std::string_view> sample;
  std::size_t taken = 0;
  std::string_view rest = text;
  for (std::string_view line; take_line(rest, line);) {
    taken = text.size() - rest.size();
    // A line that the kilobyte cuts off says nothing, but where it is one of the first two.
    if (taken > kSampleHead && sample.size() > 1) {
      break;
    }
    const std::string_view words = trimmed(line);
    if (!words.empty() && comments.find(words.front()) == std::string_view::npos) {
      sample.push_back(line);
    }
  }
  return sample;
}

template <typename Count>
std::size_t lines_alike(const std::vector<std::string_view>& sample, const Count& count) {
  const std::size_t first = count(sample.front());
  return static_cast<std::size_t>(std::count_if(
      sample.begin(), sample.end(), [&](std::string_view line) { return count(line) == first; }));
}

}  // namespace

bool skip_byte_order_mark(std::string_view& text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  const bool marked = text.starts_with(kMark);
  text.remove_prefix(marked ? kMark.size() : 0);
  return marked;
}

bool take_line(std::string_view& rest, std::string_view& line) {
  if (rest.empty()) {
    return false;
  }
  const std::size_t end = std::min(rest.find_first_of("\r\n"), rest.size());
  line = rest.substr(0, end);
  rest.remove_prefix(end);
  rest.remove_prefix(rest.starts_with("\r\n") ? 2 : std::min<std::size_t>(rest.size(), 1));
  return true;
}

std::string_view Dialect::name() const {
  switch (separator) {
    case '\t':
      return "tab";
    case ';':
      return "semicolon";
    case '|':
      return "bar";
    case ' ':
      return "blanks";
    default:
      return "comma";
  }
}

Dialect find_dialect(std::string_view text, std::string_view comments) {
  const auto sample = sample_of(text, comments);
  if (sample.empty()) {
    return {};
  }
  Dialect found;
  std::size_t most = 0;
  for (const char separator : kSeparators) {
    const auto count = [separator](std::string_view line) { return count_of(line, separator); };
    if (count(sample.front()) == 0) {
      continue;
    }
    if (const std::size_t alike = lines_alike(sample, count); alike > most) {
      most = alike;
      found.separator = separator;
    }
  }
  const bool several_words = count_words(sample.front()) > 1;
  if (most == 0 && several_words && 2 * lines_alike(sample, count_words) > sample.size()) {
    found.separator = ' ';
  }
  return found;
}

bool FieldSplitter::separates(char c) const {
  return dialect_.separator == ' ' ? c == ' ' || c == '\t' : c == dialect_.separator;
}

std::string_view FieldSplitter::without_blanks(std::string_view text) const {
  const std::string_view blanks = dialect_.separator == '\t' ? " " : " \t";
  const std::size_t first = text.find_first_not_of(blanks);
  return first == std::string_view::npos
             ? std::string_view{}
             : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Takes the field in quotes at the start of `rest`.
std::string_view FieldSplitter::take_quoted(std::string_view& rest) {
  std::size_t end = 1;
  bool doubled = false;
  while (true) {
    end = rest.find('"', end);
    if (end == std::string_view::npos) {
      fault_ =
          "a quote is not closed in this line: a field ends in its line, so take line breaks out "
          "of it";
      rest = {};
      return {};
    }
    if (end + 1 == rest.size() || rest[end + 1] != '"') {
      break;
    }
    doubled = true;
    end += 2;
  }
  std::string_view field = rest.substr(1, end - 1);
  if (doubled) {
    std::string& text = unquoted_.emplace_back();
    for (std::size_t at = 0; at < field.size(); ++at) {
      text.push_back(field[at]);
      at += field[at] == '"' ? 1U : 0U;
    }
    field = text;
  }
  rest.remove_prefix(end + 1);
  if (dialect_.separator != ' ') {
    rest = without_blanks(rest);
  }
  if (!rest.empty() && !separates(rest.front())) {
    fault_ = fmt::format("a {} is expected behind a closing quote", dialect_.name());
  }
  return field;
}

const std::vector<std::string_view>& FieldSplitter::split(std::string_view line) {
  fields_.clear();
  unquoted_.clear();
  fault_.clear();
  std::string_view rest = line;
  while (fault_.empty()) {
    rest = without_blanks(rest);
    if (rest.starts_with('"')) {
      fields_.push_back(take_quoted(rest));
    } else {
      const auto* const end =
          std::find_if(rest.begin(), rest.end(), [this](char c) { return separates(c); });
      const auto length = static_cast<std::size_t>(end - rest.begin());
      fields_.push_back(without_blanks(rest.substr(0, length)));
      rest.remove_prefix(length);
    }
    if (fields_.size() > most_) {
      fault_ = fmt::format("more than {} columns", most_);
    }
    if (rest.empty()) {
      break;
    }
    rest.remove_prefix(1);  // the separator
  }
  return fields_;
}

}  // namespace sotto

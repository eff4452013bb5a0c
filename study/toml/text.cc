#include <sotto/study/toml/text.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>

namespace sotto::study {
namespace {

/// How deep lists and inline tables, and the parts of a key, may go: a table that is read
/// from a text is then some hundred levels deep at most, whatever walks over it.
constexpr std::size_t kDeepest = 16;

/// Goes through a text as a parser of TOML does, up to the first mistake, and counts how deep it
/// is.
class DepthScan {
 public:
  DepthScan(const std::string& path, std::string_view text) : path_(path), rest_(text) {}

  void run() {
    while (!rest_.empty()) {
      const char c = rest_.front();
      if (c == '#') {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (c == '"' || c == '\'') {
        skip_string(c);
      } else {
        take(c);
        rest_.remove_prefix(1);
      }
    }
  }

 private:
  void take(char c) {
    switch (c) {
      case '[':
      case '{':
        count(++open_, "lists and tables within each other");
        parts_ = 1;
        break;
      case ']':
      case '}':
        open_ -= std::min<std::size_t>(open_, 1);
        break;
      case '.':
        count(++parts_, "parts of a key");
        break;
      case '\n':
        ++line_;
        [[fallthrough]];
      case ',':
      case '=':
        parts_ = 1;
        break;
      default:
        break;
    }
  }

  void count(std::size_t depth, const char* of) const {
    if (depth > kDeepest) {
      throw Error(fmt::format("{}:{}: more than {} {}", path_, line_, kDeepest, of));
    }
  }

  void skip_string(char quote) {
    const std::string three(3, quote);
    const bool lines = rest_.starts_with(three);
    const std::string_view end =
        lines ? std::string_view(three) : std::string_view(three).substr(2);
    rest_.remove_prefix(end.size());
    while (!rest_.empty() && !rest_.starts_with(end) && (lines || rest_.front() != '\n')) {
      const bool escape = quote == '"' && rest_.front() == '\\' && rest_.size() > 1;
      const std::string_view skipped = rest_.substr(0, escape ? 2 : 1);
      line_ += static_cast<std::size_t>(std::ranges::count(skipped, '\n'));
      rest_.remove_prefix(skipped.size());
    }
    if (rest_.starts_with(end)) {
      rest_.remove_prefix(end.size());
    }
    if (lines) {
      // Quotes may stand before the three that end it.
      for (int more = 0; more < 2 && rest_.starts_with(quote); ++more) {
        rest_.remove_prefix(1);
      }
    }
  }

  const std::string& path_;
  std::string_view rest_;
  std::size_t line_ = 1;
  std::size_t open_ = 0;
  std::size_t parts_ = 1;
};

/// The table that the last header of a file opens, or the file's own.
const toml::table& last_table(const toml::table& file) {
  const toml::table* last = &file;
  std::vector<const toml::table*> waiting = {&file};
  const auto consider = [&](const toml::node& node) {
    const toml::table* table = node.as_table();
    if (table != nullptr && !table->is_inline()) {
      waiting.push_back(table);
      last = table->source().begin.line >= last->source().begin.line ? table : last;
    }
  };
  while (!waiting.empty()) {
    const toml::table* table = waiting.back();
    waiting.pop_back();
    for (const auto& [key, value] : *table) {
      consider(value);
      if (const toml::array* list = value.as_array()) {
        std::for_each(list->begin(), list->end(), consider);
      }
    }
  }
  return *last;
}

/// What `key`, with dots between its parts, leads to in a table, if anything.
const toml::node* walk(const toml::table& table, std::string_view key) {
  const toml::node* node = &table;
  while (node != nullptr && !key.empty()) {
    const std::string_view part = key.substr(0, key.find('.'));
    key.remove_prefix(std::min(key.size(), part.size() + 1));
    if (const toml::array* list = node->as_array(); list != nullptr && !list->empty()) {
      node = &list->back();
    }
    std::string_view name = trimmed(part);
    if (name.size() > 1 && (name.front() == '"' || name.front() == '\'')) {
      name = name.substr(1, name.size() - 2);
    }
    node = node->is_table() ? node->as_table()->get(name) : nullptr;
  }
  return node;
}

/// Says where a key stands first that a parser has found a second time. Nothing where that is not a
/// matter of two lines.
void blame_repeated(const std::string& path, const std::string& text,
                    const toml::parse_error& error) {
  const std::string_view what = error.description();
  const auto from = what.find('\'');
  const auto to = what.rfind('\'');
  if (what.find("cannot redefine") == std::string_view::npos || from == to) {
    return;
  }
  const std::string_view key = what.substr(from + 1, to - from - 1);
  const auto line = error.source().begin.line;
  std::size_t before = 0;  // where the line begins
  for (auto count = line; count > 1; --count) {
    before = text.find('\n', before) + 1;
  }
  try {
    const toml::table file = toml::parse(std::string_view(text).substr(0, before));
    const bool header = trimmed(std::string_view(text).substr(before)).starts_with('[');
    const toml::node* first = walk(header ? file : last_table(file), key);
    if (first != nullptr) {
      throw Error(fmt::format("{}:{}: '{}' stands in line {} already; leave out one of the two",
                              path, line, key, first->source().begin.line));
    }
  } catch (const toml::parse_error&) {
    return;  // both stand in something that goes over several lines
  }
}

}  // namespace

toml::table parse_toml(const std::string& path, const std::string& text) {
  DepthScan(path, text).run();
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    blame_repeated(path, text, error);
    throw Error(
        fmt::format("{}:{}: not TOML: {}", path, error.source().begin.line, error.description()));
  }
}

}  // namespace sotto::study

// A table of a TOML file, read key by key: what is there is checked, what was not asked for is
// refused. Errors name file, line and key. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

namespace sotto::study {

/// The file's text; throws Error, which begins with `option`, where it cannot be read.
std::string read_toml_text(std::string_view option, const std::string& path);
/// Parses the file; throws Error, which begins with `option` where the file cannot be read.
toml::table read_toml(std::string_view option, const std::string& path);

/// "FILE:LINE", of a value that stands in no file "FILE".
std::string toml_place(const std::string& path, const toml::node& node);

/// The value as it would stand on a command line. Throws Error, which begins with `where`, for a
/// list, a table or a date.
std::string toml_value_text(const toml::node& value, const std::string& where,
                            std::string_view key);

class TomlReader {
 public:
  /// `table` must outlive the reader; `name` is how messages call it, "" for the whole file.
  TomlReader(const std::string& path, std::string name, const toml::table& table)
      : path_(path), name_(std::move(name)), table_(table) {}

  bool has(std::string_view key) const { return table_.contains(key); }
  bool holds_text(std::string_view key) const { return table_[key].is_string(); }

  /// The value of a key, none where it is missing. A number that is whole is a whole number too.
  std::optional<std::string> text(std::string_view key);
  std::optional<double> number(std::string_view key);
  std::optional<std::uint64_t> count(std::string_view key, std::uint64_t least, std::uint64_t most);
  std::optional<bool> truth(std::string_view key);
  /// A string or a list of strings.
  std::vector<std::string> texts(std::string_view key);
  /// A table within this one.
  std::optional<TomlReader> table(std::string_view key);
  /// A table or a list of tables.
  std::vector<TomlReader> tables(std::string_view key);
  /// All keys with a string each.
  std::map<std::string, std::string> all_texts();
  /// What `parse` makes of a string, or of a number as it is written; what it throws gets place and
  /// key in front.
  template <typename Parse>
  auto parsed(std::string_view key, const Parse& parse)
      -> std::optional<decltype(parse(std::string()))> {
    const auto value = word(key);
    if (!value) {
      return std::nullopt;
    }
    std::optional<decltype(parse(std::string()))> result;
    at(key, [&] { result = parse(*value); });
    return result;
  }

  /// Runs `act`; what it throws gets place and key in front.
  void at(std::string_view key, const std::function<void()>& act) const;
  /// "FILE:LINE: TABLE.KEY", of a key that is missing the table's line.
  std::string place(std::string_view key) const;
  /// The path of a file that this one names: relative to this one's folder, unless it is absolute.
  /// Empty text names none, and stays empty.
  std::string beside(const std::string& file) const;
  /// Throws Error about a key.
  [[noreturn]] void refuse(std::string_view key, std::string_view why) const;
  /// Keys that may be there, though nobody may ask for them.
  void allow(std::initializer_list<std::string_view> keys);
  /// Refuses a key that is missing, or the one that seems to be meant by it.
  void require(std::string_view key, std::string_view what) const;
  /// Refuses keys that nobody asked for; call it last.
  void finish() const;

 private:
  /// The node of a key, which is known from now on.
  const toml::node* find(std::string_view key);
  /// A string, or a number as it is written.
  std::optional<std::string> word(std::string_view key);
  std::string called(std::string_view key) const;

  const std::string& path_;
  std::string name_;
  const toml::table& table_;
  std::vector<std::string> known_;
};

}  // namespace sotto::study

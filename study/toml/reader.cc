#include <sotto/study/toml/reader.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/input_file.h>
#include <sotto/base/names.h>
#include <sotto/study/toml/text.h>

namespace sotto::study {
namespace {

/// A measured network of a thousand nodes has a line for each of a million links.
constexpr std::uint64_t kMostTomlBytes = std::uint64_t{128} << 20U;

}  // namespace

std::string read_toml_text(std::string_view option, const std::string& path) {
  auto text = read_input(path, kMostTomlBytes);
  if (!text.ok()) {
    sotto::refuse(option, path, text.status().message());
  }
  return std::move(*text);
}

toml::table read_toml(std::string_view option, const std::string& path) {
  return parse_toml(path, read_toml_text(option, path));
}

std::string toml_place(const std::string& path, const toml::node& node) {
  const auto line = node.source().begin.line;
  return line == 0 ? path : fmt::format("{}:{}", path, line);
}

std::string toml_value_text(const toml::node& value, const std::string& where,
                            std::string_view key) {
  if (const auto* text = value.as_string()) {
    return text->get();
  }
  if (const auto* number = value.as_integer()) {
    return fmt::format("{}", number->get());
  }
  if (const auto* number = value.as_floating_point()) {
    return fmt::format("{}", number->get());
  }
  if (const auto* truth = value.as_boolean()) {
    return truth->get() ? "true" : "false";
  }
  throw Error(
      fmt::format("{}: '{}' must be a string, a number, true or false", where, std::string(key)));
}

const toml::node* TomlReader::find(std::string_view key) {
  allow({key});
  return table_.get(key);
}

std::string TomlReader::called(std::string_view key) const {
  return name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
}

std::string TomlReader::place(std::string_view key) const {
  const toml::node* node = table_.get(key);
  return fmt::format(
      "{}: {}", toml_place(path_, node == nullptr ? static_cast<const toml::node&>(table_) : *node),
      called(key));
}

std::string TomlReader::beside(const std::string& file) const {
  return file.empty() ? file : (std::filesystem::path(path_).parent_path() / file).string();
}

void TomlReader::refuse(std::string_view key, std::string_view why) const {
  throw Error(fmt::format("{}: {}", place(key), why));
}

void TomlReader::at(std::string_view key, const std::function<void()>& act) const {
  try {
    act();
  } catch (const Error& error) {
    refuse(key, error.what());
  }
}

void TomlReader::allow(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      known_.emplace_back(key);
    }
  }
}

void TomlReader::require(std::string_view key, std::string_view what) const {
  if (has(key)) {
    return;
  }
  std::vector<std::string> unknown;
  for (const auto& [other, value] : table_) {
    if (std::find(known_.begin(), known_.end(), other.str()) == known_.end()) {
      unknown.emplace_back(other.str());
    }
  }
  if (const std::string meant = nearest(key, unknown); !meant.empty()) {
    refuse(meant, fmt::format("there is no such key; did you mean {}?", key));
  }
  refuse(key, fmt::format("it is missing; give {}", what));
}

std::optional<std::string> TomlReader::word(std::string_view key) {
  const toml::node* node = find(key);
  if (node != nullptr && node->is_integer()) {
    return fmt::to_string(node->as_integer()->get());
  }
  if (node != nullptr && node->is_floating_point()) {
    return fmt::to_string(node->as_floating_point()->get());
  }
  return text(key);
}

std::optional<std::string> TomlReader::text(std::string_view key) {
  const toml::node* node = find(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (!node->is_string()) {
    refuse(key, "it must be a string");
  }
  return node->as_string()->get();
}

std::optional<double> TomlReader::number(std::string_view key) {
  const toml::node* node = find(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (node->is_string() && node->as_string()->get().ends_with('%')) {
    refuse(key, "it must be a number, a share: 0.04 for 4 %");
  }
  const auto value = node->value<double>();
  if (!node->is_number() || !value || !std::isfinite(*value)) {
    refuse(key, "it must be a number");
  }
  return value;
}

std::optional<std::uint64_t> TomlReader::count(std::string_view key, std::uint64_t least,
                                               std::uint64_t most) {
  const toml::node* node = find(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  const auto* value = node->as_integer();
  if (value == nullptr || value->get() < 0 || static_cast<std::uint64_t>(value->get()) < least ||
      static_cast<std::uint64_t>(value->get()) > most) {
    refuse(key, least == most
                    ? fmt::format("it must be {}", least)
                    : fmt::format("it must be a whole number from {} to {}", least, most));
  }
  return static_cast<std::uint64_t>(value->get());
}

std::optional<bool> TomlReader::truth(std::string_view key) {
  const toml::node* node = find(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (!node->is_boolean()) {
    refuse(key, "it must be true or false");
  }
  return node->as_boolean()->get();
}

std::vector<std::string> TomlReader::texts(std::string_view key) {
  const toml::node* node = find(key);
  if (node == nullptr) {
    return {};
  }
  if (const auto* one = node->as_string()) {
    return {one->get()};
  }
  const auto* list = node->as_array();
  if (list == nullptr) {
    refuse(key, "it must be a string, or a list of strings");
  }
  std::vector<std::string> found;
  for (const toml::node& one : *list) {
    const auto* value = one.as_string();
    if (value == nullptr) {
      refuse(key, "it must be a string, or a list of strings");
    }
    found.push_back(value->get());
  }
  return found;
}

std::optional<TomlReader> TomlReader::table(std::string_view key) {
  const toml::node* node = find(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (!node->is_table()) {
    refuse(key, "it must be a table");
  }
  return TomlReader(path_, called(key), *node->as_table());
}

std::vector<TomlReader> TomlReader::tables(std::string_view key) {
  const toml::node* node = find(key);
  std::vector<TomlReader> found;
  if (node == nullptr) {
    return found;
  }
  if (const auto* one = node->as_table()) {
    found.emplace_back(path_, called(key), *one);
    return found;
  }
  const auto* list = node->as_array();
  if (list == nullptr) {
    refuse(key, "it must be a table, or a list of tables");
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto* each = list->get(i)->as_table();
    if (each == nullptr) {
      refuse(key, "it must be a table, or a list of tables");
    }
    found.emplace_back(path_, fmt::format("{}[{}]", called(key), i + 1), *each);
  }
  return found;
}

std::map<std::string, std::string> TomlReader::all_texts() {
  std::map<std::string, std::string> found;
  for (const auto& [key, value] : table_) {
    found.emplace(key.str(), text(key.str()).value_or(""));
  }
  return found;
}

void TomlReader::finish() const {
  for (const auto& [key, value] : table_) {
    if (std::find(known_.begin(), known_.end(), key.str()) == known_.end()) {
      refuse(key.str(), fmt::format("there is no such key{} there are {}",
                                    did_you_mean(key.str(), known_), fmt::join(known_, ", ")));
    }
  }
}

}  // namespace sotto::study

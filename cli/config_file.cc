#include "config_file.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/console/command.h>
#include <sotto/console/usage.h>
#include <sotto/study/toml/reader.h>

namespace sotto::cli {
namespace {

/// Options of the command line alone.
constexpr std::array<std::string_view, 3> kNotInFiles = {"help", "config", "version"};

/// Text does not pass for a number, nor for true or false.
void check_type(const toml::node& value, CLI::Option& option, const std::string& where,
                std::string_view key) {
  if (!value.is_string()) {
    return;
  }
  if (option.get_items_expected_max() == 0) {
    throw Error(fmt::format("{}: '{}' must be true or false, without quotes", where, key));
  }
  if (console::is_numeric(option)) {
    throw Error(fmt::format("{}: '{}' must be a number, without quotes", where, key));
  }
}

/// The values of a setting; a list for an option that may be given repeatedly.
std::vector<std::string> texts_of(const toml::node& value, const CLI::Option& option,
                                  const std::string& where, std::string_view key) {
  const toml::array* list = value.as_array();
  if (list == nullptr || option.get_multi_option_policy() != CLI::MultiOptionPolicy::TakeAll) {
    return {study::toml_value_text(value, where, key)};
  }
  std::vector<std::string> texts;
  for (const toml::node& element : *list) {
    texts.push_back(study::toml_value_text(element, where, key));
  }
  return texts;
}

std::vector<std::string> known_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) {
      if (std::find(kNotInFiles.begin(), kNotInFiles.end(), name) == kNotInFiles.end()) {
        names.push_back(name);
      }
    }
  }
  return names;
}

[[noreturn]] void refuse_unknown_key(const std::string& where, const std::string& written,
                                     const CLI::App& command) {
  const std::string key = dashed(written);
  const auto known = known_names(command);
  throw Error(fmt::format("{}: '{}' is no setting of `sotto {}`{} there are {}", where, key,
                          command.get_name(), did_you_mean(key, known), fmt::join(known, ", ")));
}

CLI::Option* find_option(CLI::App& command, std::string_view key) {
  const std::string name = dashed(key);
  if (std::find(kNotInFiles.begin(), kNotInFiles.end(), name) != kNotInFiles.end()) {
    return nullptr;
  }
  return command.get_option_no_throw("--" + name);
}

/// The option beside which `option` makes no sense and which is set already, if any.
const CLI::Option* rival_of(const CLI::Option& option) {
  for (const CLI::Option* rival : option.get_excludes()) {
    if (rival->count() > 0) {
      return rival;
    }
  }
  return nullptr;
}

}  // namespace

void apply_config_file(CLI::App& command, const std::string& path) {
  apply_settings(command, study::read_toml("config", path), path);
}

void apply_settings(CLI::App& command, const toml::table& table, const std::string& path) {
  std::map<const CLI::Option*, const toml::node*> set_here;
  for (const auto& [key, value] : table) {
    const std::string where = study::toml_place(path, value);
    CLI::Option* option = find_option(command, std::string(key.str()));
    if (option == nullptr) {
      refuse_unknown_key(where, std::string(key.str()), command);
    }
    if (const auto first = set_here.find(option); first != set_here.end()) {
      throw Error(
          fmt::format("{}: '{}' is what line {} says already: dashes and underscores are one",
                      where, std::string(key.str()), first->second->source().begin.line));
    }
    const CLI::Option* rival = rival_of(*option);
    if (const auto first = set_here.find(rival); first != set_here.end()) {
      throw Error(fmt::format("{}: '{}' cannot stand beside '{}' in line {}", where,
                              std::string(key.str()), rival->get_single_name(),
                              first->second->source().begin.line));
    }
    const bool given = option->count() > 0;
    set_here.emplace(option, &value);
    if (given || rival != nullptr) {
      continue;  // the command line wins
    }
    check_type(value, *option, where, key.str());
    for (const std::string& text : texts_of(value, *option, where, key.str())) {
      option->add_result(text);
    }
    try {
      option->run_callback();
    } catch (const CLI::Error& error) {
      throw Error(
          fmt::format("{}: '{}': {}", where, key.str(), console::explain_value(*option, error)));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", where, error.what()));
    }
  }
}

}  // namespace sotto::cli

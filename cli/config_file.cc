#include "config_file.h"

#include <filesystem>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <toml++/toml.h>

#include <sotto/base/error.h>

namespace sotto::cli {
namespace {

/// Options of the command line alone.
constexpr std::array<std::string_view, 3> kNotInFiles = {"help", "config", "version"};

std::string place(const std::string& path, const toml::source_region& region) {
  return fmt::format("{}:{}", path, region.begin.line);
}

toml::table read_table(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    refuse("--config", path, "it is a directory");
  }
  try {
    return toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    if (!error.source().begin) {
      refuse("--config", path, "the file cannot be read");
    }
    throw Error(fmt::format("{}: not TOML: {}", place(path, error.source()), error.description()));
  }
}

/// The value as it would stand on a command line.
std::string text_of(const toml::node& value, const std::string& where, std::string_view key) {
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

std::string known_names(const CLI::App& command) {
  std::string names;
  for (const CLI::Option* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) {
      if (std::find(kNotInFiles.begin(), kNotInFiles.end(), name) == kNotInFiles.end()) {
        names += (names.empty() ? "" : ", ") + name;
      }
    }
  }
  return names;
}

CLI::Option* find_option(CLI::App& command, std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
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
  const toml::table table = read_table(path);
  std::set<const CLI::Option*> set_here;
  for (const auto& [key, value] : table) {
    const std::string where = place(path, value.source());
    CLI::Option* option = find_option(command, std::string(key.str()));
    if (option == nullptr) {
      throw Error(fmt::format("{}: '{}' is no setting of `sotto {}`; there are: {}", where,
                              std::string(key.str()), command.get_name(), known_names(command)));
    }
    const CLI::Option* rival = rival_of(*option);
    if (rival != nullptr && set_here.contains(rival)) {
      throw Error(fmt::format("{}: '{}' cannot stand beside '{}'", where, std::string(key.str()),
                              rival->get_single_name()));
    }
    if (option->count() > 0 || rival != nullptr) {
      continue;  // the command line wins
    }
    set_here.insert(option);
    option->add_result(text_of(value, where, key.str()));
    try {
      option->run_callback();
    } catch (const CLI::Error& error) {
      throw Error(fmt::format("{}: {}", where, error.what()));
    }
  }
}

}  // namespace sotto::cli

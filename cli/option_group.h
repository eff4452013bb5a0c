// Options of a command under one title of its help. One thread at a time.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <sotto/trainers/optimizer_settings.h>

#include "commands.h"

namespace sotto::cli {

/// Adds options to a command, which must outlive the group; the variables must live as long as the
/// command. The help shows the variable's value as the default, unless it is optional.
class OptionGroup {
 public:
  OptionGroup(CLI::App& command, std::string title) : command_(command), title_(std::move(title)) {}

  /// An option with a value, called `type` in the help.
  template <typename T>
  CLI::Option& option(const std::string& name, T& value, const std::string& type,
                      const std::string& help) {
    CLI::Option* option = command_.add_option(name, value, help)->type_name(type)->group(title_);
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>) {
      option->check(number());
    }
    if constexpr (std::is_same_v<T, std::string> || std::is_arithmetic_v<T>) {
      option->capture_default_str();
    }
    return *option;
  }

  /// An option that counts, up to `largest`.
  template <typename T>
  CLI::Option& count(const std::string& name, T& value, const std::string& type,
                     const std::string& help, std::uint64_t largest = kMostRounds) {
    return *option(name, value, type, help).check(whole_number(largest));
  }

  CLI::Option& flag(const std::string& name, bool& value, const std::string& help) {
    return *command_.add_flag(name, value, help)->group(title_);
  }

  /// A setting of the library's, under its name.
  void add(const Setting& setting) {
    const std::string name = "--" + std::string(setting.name);
    const std::string type(setting.type);
    const std::string help(setting.help);
    std::visit(
        [&](auto* value) {
          using T = std::remove_pointer_t<decltype(value)>;
          if constexpr (std::is_same_v<T, bool>) {
            flag(name, *value, help);
          } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, double> ||
                               std::is_same_v<T, std::optional<double>>) {
            option(name, *value, type, help);
          } else {
            count(name, *value, type, help, setting.largest);
          }
        },
        setting.value);
  }

  /// An option that may be given again and again, with one value each time.
  CLI::Option& list(const std::string& name, std::vector<std::string>& values,
                    const std::string& type, const std::string& help) {
    return *command_.add_option(name, values, help)
                ->type_name(type)
                ->group(title_)
                ->expected(1)
                ->take_all();
  }

 private:
  CLI::App& command_;
  std::string title_;
};

}  // namespace sotto::cli

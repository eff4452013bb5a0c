// Options of a command under one title of its help. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include <sotto/base/number.h>
#include <sotto/base/setting.h>
#include <sotto/console/command.h>

namespace sotto::console {

/// Adds options to a command, which must outlive the group; the variables must live as long as the
/// command. The help shows the variable's value as the default, unless it is optional.
class OptionGroup {
 public:
  OptionGroup(CLI::App& command, std::string title) : command_(command), title_(std::move(title)) {}

  /// An option with a value, called `type` in the help.
  CLI::Option& option(const std::string& name, std::string& value, const std::string& type,
                      const std::string& help) {
    return *command_.add_option(name, value, help)
                ->type_name(type)
                ->group(title_)
                ->capture_default_str();
  }
  /// One that measures.
  CLI::Option& option(const std::string& name, double& value, const std::string& type,
                      const std::string& help) {
    return *numeric(name, value, type, help).check(number());
  }
  CLI::Option& option(const std::string& name, std::optional<double>& value,
                      const std::string& type, const std::string& help) {
    return *numeric(name, value, type, help).check(number());
  }

  /// An option that counts, up to `largest`, or what its type holds.
  template <typename T>
  CLI::Option& count(const std::string& name, T& value, const std::string& type,
                     const std::string& help, std::uint64_t largest = kMostRounds) {
    constexpr std::uint64_t kHolds = std::numeric_limits<typename HeldType<T>::Type>::max();
    return *numeric(name, value, type, help).check(whole_number(std::min(largest, kHolds)));
  }

  /// Several whole numbers, with commas between.
  CLI::Option& counts(const std::string& name, std::vector<int>& values, const std::string& type,
                      const std::string& help) {
    const auto take = [&values, name](const CLI::results_t& texts) {
      const auto found = parse_counts(name, texts.front());
      values = found.value_or(values);
      return found.has_value();
    };
    return *command_.add_option(name, take, help)->type_name(type)->group(title_);
  }

  /// A switch; given twice, it is refused as any other option is.
  CLI::Option& flag(const std::string& name, bool& value, const std::string& help) {
    return *command_.add_flag(name, value, help)
                ->group(title_)
                ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  }

  /// A switch whose default depends on others: `--NAME=false` turns it off.
  CLI::Option& flag(const std::string& name, std::optional<bool>& value, const std::string& help) {
    const auto take = [&value](std::int64_t given) { value = given > 0; };
    return *command_.add_flag_function(name, take, help)
                ->group(title_)
                ->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  }

  /// A setting of the library's, under its name.
  void add(const Setting& setting) {
    const std::string name = "--" + std::string(setting.name);
    const std::string type(setting.type);
    const std::string help(setting.help);
    std::visit(
        [&](auto* value) {
          using T = std::remove_pointer_t<decltype(value)>;
          if constexpr (std::is_same_v<typename HeldType<T>::Type, bool>) {
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

  /// An option that may be given again and again, with another value each time.
  CLI::Option& list(const std::string& name, std::vector<std::string>& values,
                    const std::string& type, const std::string& help) {
    const auto take = [&values, name](const CLI::results_t& texts) {
      refuse_repeated(name, texts);
      values = texts;
      return true;
    };
    return repeatable(*command_.add_option(name, take, help), type);
  }
  /// An option that may be given again and again, in an order that counts: a value may come twice.
  CLI::Option& sequence(const std::string& name, std::vector<std::string>& values,
                        const std::string& type, const std::string& help) {
    return repeatable(*command_.add_option(name, values, help), type);
  }

 private:
  CLI::Option& repeatable(CLI::Option& option, const std::string& type) {
    return *option.type_name(type)->group(title_)->expected(1)->take_all();
  }
  /// The library's own conversions take 010 for eight, and go by the locale.
  template <typename T>
  CLI::Option& numeric(const std::string& name, T& value, const std::string& type,
                       const std::string& help) {
    using Number = typename HeldType<T>::Type;
    const auto take = [&value](const CLI::results_t& texts) {
      const auto found = parse_number<Number>(texts.front());
      value = found.value_or(Number{});
      return found.has_value();
    };
    const auto shown = [&value] { return CLI::detail::to_string(value); };
    CLI::Option* option = command_.add_option(name, take, help, false, shown);
    if constexpr (std::is_arithmetic_v<T>) {
      option->capture_default_str();
    }
    return *option->type_name(type)->group(title_);
  }

  CLI::App& command_;
  std::string title_;
};

}  // namespace sotto::console

#include <sotto/console/command.h>

#include <CLI/CLI.hpp>  // all of it, once: what App.hpp leaves undefined

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/base/setting.h>
#include <sotto/console/option_group.h>

namespace sotto::console {
namespace {

/// What such validators are called.
constexpr const char* kNumeric = "numeric";

}  // namespace

CLI::Validator whole_number(std::uint64_t largest) {
  return CLI::Validator(
      [largest](std::string& text) -> std::string {
        return parse_number<std::uint64_t>(text, 0, largest)
                   ? std::string()
                   : fmt::format("'{}' is no whole number from 0 to {}", text, largest);
      },
      "", kNumeric);
}

CLI::Validator number() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        const auto value = parse_number<double>(text);
        return !value                   ? fmt::format("'{}' is no number", text)
               : !std::isfinite(*value) ? fmt::format("'{}' is too large for a number", text)
                                        : std::string();
      },
      "", kNumeric);
}

std::optional<std::vector<int>> parse_counts(const std::string& option, std::string_view text) {
  std::vector<int> values;
  std::vector<std::string> words;
  for (std::string_view rest = text;;) {
    const auto comma = rest.find(',');
    const auto value = parse_number<int>(rest.substr(0, comma));
    if (!value) {
      return std::nullopt;
    }
    values.push_back(*value);
    words.push_back(fmt::to_string(*value));
    if (comma == std::string_view::npos) {
      refuse_repeated(option, words);
      return values;
    }
    rest.remove_prefix(comma + 1);
  }
}

bool is_numeric(CLI::Option& option) {
  try {
    return option.get_validator(kNumeric) != nullptr;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

void add_common_options(CLI::App& command, CommonOptions& options) {
  add_common_options(command, options, options.seed);
}

void add_common_options(CLI::App& command, OutputOptions& options, std::uint64_t& seed) {
  OptionGroup group(command, "Options");
  const auto set_json = [&options](const CLI::results_t& values) {
    options.json = values.empty() || values.front().empty() ? "-" : values.front();
    return true;
  };
  command
      .add_option("--json", set_json,
                  "Write the result as JSON to FILE; - or nothing is standard output")
      ->type_name("[FILE]")
      ->expected(0, 1);
  group.flag("--quiet", options.quiet, "Print nothing but errors");
  group.count("--seed", seed, "S", "Seed of everything random", ~std::uint64_t{0});
  group.option("--config", options.config, "FILE.toml",
               "Take settings from a TOML file; the command line wins");
}

std::optional<std::uint64_t> given_seed(const CLI::App& command, const CommonOptions& options) {
  return command.get_option("--seed")->count() > 0 ? std::optional(options.seed) : std::nullopt;
}

void default_to_scenario_seed(CLI::App& command) {
  command.get_option("--seed")->default_str("")->description(
      "Seed of everything random, in place of the scenario's");
}

}  // namespace sotto::console

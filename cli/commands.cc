#include "commands.h"

#include <CLI/CLI.hpp>  // all of it, once: what App.hpp leaves undefined

#include <charconv>

#include <fmt/format.h>

#include "option_group.h"

namespace sotto::cli {
namespace {

/// What such validators are called.
constexpr const char* kNumeric = "numeric";

}  // namespace

CLI::Validator whole_number(std::uint64_t largest) {
  return CLI::Validator(
      [largest](std::string& text) -> std::string {
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value <= largest) {
          return {};
        }
        return fmt::format("'{}' is no whole number from 0 to {}", text, largest);
      },
      "", kNumeric);
}

CLI::Validator number() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
        double value = 0;
        const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
        return error == std::errc() && end == text.data() + text.size()
                   ? std::string()
                   : fmt::format("'{}' is no number", text);
      },
      "", kNumeric);
}

bool is_numeric(CLI::Option& option) {
  try {
    return option.get_validator(kNumeric) != nullptr;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

void add_common_options(CLI::App& command, CommonOptions& options) {
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
  group.count("--seed", options.seed, "S", "Seed of everything random", ~std::uint64_t{0});
  group.option("--config", options.config, "FILE.toml",
               "Take settings from a TOML file; the command line wins");
}

void default_to_scenario_seed(CLI::App& command) {
  command.get_option("--seed")->default_str("")->description(
      "Seed of everything random, in place of the scenario's");
}

}  // namespace sotto::cli

#include "commands.h"

#include <charconv>

#include <fmt/format.h>

namespace sotto::cli {

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
      "");
}

void add_common_options(CLI::App& command, CommonOptions& options) {
  command.add_option("--json", options.json, "Write the result as JSON to FILE; - is stdout")
      ->type_name("FILE");
  command.add_flag("--quiet", options.quiet, "Print nothing but errors");
  command.add_option("--seed", options.seed, "Seed of everything random")
      ->type_name("S")
      ->check(whole_number())
      ->capture_default_str();
  command
      .add_option("--config", options.config,
                  "Take settings from a TOML file; the command line wins")
      ->type_name("FILE.toml");
}

}  // namespace sotto::cli

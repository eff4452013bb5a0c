// A subcommand of a program, and the options that all of them share. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>

#include <sotto/base/setting.h>

namespace sotto::console {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongRequest = 2;

/// A subcommand. `program` owns the App.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

/// The options by which every command is told where its result goes, and which file has settings.
struct OutputOptions {
  std::string json;  ///< where the result goes as JSON; "-" is standard output, "" nowhere
  bool quiet = false;
  std::string config;
};

/// What every command understands.
struct CommonOptions : OutputOptions {
  std::uint64_t seed = 0;
};

inline constexpr std::uint64_t kMostRounds = kMostCounted;

/// For options that count: refuses signs, fractions and what does not fit, which conversions to
/// unsigned numbers would wrap or cut.
CLI::Validator whole_number(std::uint64_t largest = ~std::uint64_t{0});
/// For options that measure: refuses what is no decimal number.
CLI::Validator number();

/// "64,1024" → 64, 1024; nothing for anything else. Throws Error for a number that is there twice.
std::optional<std::vector<int>> parse_counts(const std::string& option, std::string_view text);

/// Whether the option has one of these two validators.
bool is_numeric(CLI::Option& option);

/// Adds --json, --quiet, --seed and --config; `options` must live as long as the command.
void add_common_options(CLI::App& command, CommonOptions& options);
/// Adds them for a command that keeps its seed elsewhere.
void add_common_options(CLI::App& command, OutputOptions& options, std::uint64_t& seed);
/// The seed that the command line or its file gives; none where the default stands.
std::optional<std::uint64_t> given_seed(const CLI::App& command, const CommonOptions& options);
/// Lets the help say that --seed is by default a scenario's.
void default_to_scenario_seed(CLI::App& command);

}  // namespace sotto::console

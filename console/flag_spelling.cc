#include <sotto/console/flag_spelling.h>

#include <algorithm>
#include <array>
#include <utility>

#include <sotto/base/names.h>

namespace sotto::console {
namespace {

using OtherName = std::pair<std::string_view, std::string_view>;

/// What C++ programs have under a name of its own.
constexpr auto kOtherNames = std::to_array<OtherName>({{"start", "init"}, {"store", "rendezvous"}});

/// The setting that a positional holds: "scenario" of SCENARIO, "site" of SITE.toml.
std::string setting_of(const CLI::Option& positional) {
  const std::string name = CLI::detail::to_lower(positional.get_name(true));
  return name.substr(0, name.find('.'));
}

/// An option as the command has it, "--lr" or "SCENARIO"; empty: none.
std::string option_of(const CLI::App& command, const std::string& name) {
  const std::string flag = "--" + name;
  for (const CLI::Option* option : command.get_options()) {
    if (option->check_lname(name)) {
      return flag;
    }
    if (option->get_positional() && setting_of(*option) == name) {
      return option->get_name(true);
    }
  }
  for (const CLI::App* below : command.get_subcommands()) {
    if (const std::string found = option_of(*below, name); !found.empty()) {
      return found;
    }
  }
  return {};
}

}  // namespace

std::string FlagSpelling::subject(std::string_view setting) const {
  const auto* const other = std::ranges::find(kOtherNames, setting, &OtherName::first);
  const std::string option =
      option_of(command_, dashed(other == kOtherNames.end() ? setting : other->second));
  return option.empty() ? std::string(setting) : option;
}

std::string FlagSpelling::mention(std::string_view setting, std::string_view value) const {
  std::string flag = subject(setting);
  if (!value.empty() && value != "true") {
    flag.append(" ").append(value);
  }
  return flag;
}

}  // namespace sotto::console

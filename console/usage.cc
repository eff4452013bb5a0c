#include <sotto/console/usage.h>

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/names.h>

namespace sotto::console {
namespace {

/// The command that was being read, and how it is called.
struct Place {
  const CLI::App* app;
  std::string name;
};

Place place_of(const CLI::App& program) {
  Place place{&program, program.get_name()};
  for (auto inner = program.get_subcommands(); !inner.empty();
       inner = place.app->get_subcommands()) {
    place = {inner.back(), place.name + " " + inner.back()->get_name()};
  }
  return place;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

std::string explain_unknown(const Place& place, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const auto commands = commands_of(*place.app);
  if (name.starts_with('-')) {
    return fmt::format("{}: `{}` has no such option{} `{} --help` shows all", name, place.name,
                       did_you_mean(name, options_of(*place.app)), place.name);
  }
  if (commands.empty()) {
    return fmt::format("'{0}': `{1}` takes no such word; `{1} --help` shows what it takes", word,
                       place.name);
  }
  return fmt::format("{}: there is no such command{} there are {}", word,
                     did_you_mean(word, commands), fmt::join(commands, ", "));
}

/// An option that takes one value and got none or several.
std::string explain_count(const Place& place, const CLI::ParseError& error) {
  std::string message = error.what();
  const std::string name = message.substr(0, message.find(':'));
  const auto* option = place.app->get_option_no_throw(name);
  if (option == nullptr) {
    return message;
  }
  return option->count() > 1
             ? fmt::format("{}: it is given {} times, as {}; once is enough", name, option->count(),
                           fmt::join(option->results(), " and as "))
             : fmt::format("{0}: a value is missing; write {0} {1}", name, option->get_type_name());
}

/// An option that there has to be.
std::string explain_missing(const Place& place, const CLI::ParseError& error) {
  for (const CLI::Option* option : place.app->get_options()) {
    if (option->get_required() && option->count() == 0) {
      return fmt::format(
          "{0}: it is missing; write `{1} {2}`", option->get_name(), place.name,
          option->get_positional() ? option->get_type_name() : option->get_name() + " …");
    }
  }
  return error.what();
}

/// A value that is no number where one has to be, among several.
std::string explain_conversion(const Place& place, const CLI::ParseError& error) {
  std::string message = error.what();
  const auto from = message.find("--");
  const auto equals = message.find(" = ", std::min(from, message.size()));
  if (equals == std::string::npos) {
    return message;
  }
  return fmt::format("{}: '{}' is not what it takes; `{} --help` shows that",
                     message.substr(from, equals - from), message.substr(equals + 3), place.name);
}

}  // namespace

std::string explain(const CLI::App& program, const CLI::ParseError& error) {
  const Place place = place_of(program);
  const auto extras = program.remaining(true);
  if (!extras.empty()) {
    return explain_unknown(place, extras.front());
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    if (commands_of(*place.app).empty()) {
      return explain_missing(place, error);
    }
    return fmt::format("name a command after `{0}`: {1}; `{0} --help` explains them", place.name,
                       fmt::join(commands_of(*place.app), ", "));
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch)) {
    return explain_count(place, error);
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ConversionError)) {
    return explain_conversion(place, error);
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExcludesError)) {
    return fmt::format("{}: give one of the two", error.what());
  }
  return error.what();
}

std::string explain_value(const CLI::Option& option, const CLI::Error& error) {
  const std::string what = error.what();
  const std::string named = option.get_name() + ": ";
  return what.starts_with(named) ? what.substr(named.size()) : what;
}

}  // namespace sotto::console

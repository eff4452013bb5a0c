#include "usage.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/nearest.h>

namespace sotto::cli {
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

struct Name {
  std::string_view library;
  std::string_view option;
};

/// In the order of `sotto train --help`. A name ends with a colon or, before a specification, with
/// a blank.
constexpr auto kNames = std::to_array<Name>({
    {"task", "--task"},
    {"digits", "--task digits"},
    {"model", "--model"},
    {"batch", "--batch"},
    {"partition", "--partition"},
    {"start", "--init"},
    {"nodes", "--nodes"},
    {"topology", "--topology"},
    {"weighting", "--weighting"},
    {"transport", "--transport"},
    {"timeout", "--timeout"},
    {"rendezvous", "--rendezvous"},
    {"store", "--rendezvous"},
    {"bind", "--bind"},
    {"key", "--key"},
    {"peers", "--peers"},
    {"algorithm", "--algorithm"},
    {"compressor", "--compressor"},
    {"consensus_stepsize", "--consensus-stepsize"},
    {"extrapolation_clock", "--extrapolation-clock"},
    {"freeze_step", "--freeze-step"},
    {"local_step_limit", "--local-step-limit"},
    {"codec_threads", "--codec-threads"},
    {"buckets", "--buckets"},
    {"delayed_gradient", "--delayed-gradient"},
    {"rule", "--rule"},
    {"byzantine", "--byzantine"},
    {"attack", "--attack"},
    {"step_rule", "--step-rule"},
    {"learning_rate", "--lr"},
    {"momentum", "--momentum"},
    {"nesterov", "--nesterov"},
    {"weight_decay", "--weight-decay"},
    {"beta1", "--beta1"},
    {"beta2", "--beta2"},
    {"epsilon", "--epsilon"},
    {"bias_correction", "--bias-correction"},
    {"trust_coefficient", "--trust-coefficient"},
    {"clip_norm", "--clip-norm"},
    {"schedule", "--schedule"},
    {"noise_multiplier", "--noise-multiplier"},
    {"privacy_epsilon", "--privacy-epsilon"},
    {"privacy_delta", "--privacy-delta"},
    {"privacy_unit", "--privacy-unit"},
    {"privacy_ledger", "the privacy ledger"},
    {"communication_interval", "--communication-interval"},
    {"outer_step_rule", "--outer-step-rule"},
    {"outer_learning_rate", "--outer-lr"},
    {"outer_momentum", "--outer-momentum"},
    {"outer_nesterov", "--outer-nesterov"},
    {"dump-parameters", "--dump-parameters"},
    {"checkpoint", "--checkpoint"},
});

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

std::string with_option_names(std::string_view message) {
  for (const Name& name : kNames) {
    if (message.starts_with(name.library) && message.size() > name.library.size() &&
        (message[name.library.size()] == ':' || message[name.library.size()] == ' ')) {
      return std::string(name.option) + std::string(message.substr(name.library.size()));
    }
  }
  return std::string(message);
}

}  // namespace sotto::cli

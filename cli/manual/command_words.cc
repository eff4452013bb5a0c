#include "manual/command_words.h"

#include <algorithm>
#include <string_view>

#include <fmt/ranges.h>

#include <sotto/base/names.h>
#include <sotto/comm/transport.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/robust/aggregation.h>
#include <sotto/topology/registry.h>
#include <sotto/trainers/tasks/model.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "fixed_words.h"

namespace sotto::cli {
namespace {

using Names = std::vector<std::string>;

/// "on|off" → {"on", "off"}
Names alternatives(std::string_view type) {
  Names words;
  const bool named =
      std::any_of(type.begin(), type.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (named || type.find('|') == std::string_view::npos) {
    return words;
  }
  while (!type.empty()) {
    const auto word = type.substr(0, type.find('|'));
    words.emplace_back(word);
    type.remove_prefix(std::min(type.size(), word.size() + 1));
  }
  return words;
}

/// The families of which a registry's specifications are.
Names registered(std::string_view option) {
  if (option == "--algorithm") {
    return names_of(algorithms());
  }
  if (option == "--compressor") {
    return names_of(compressors());
  }
  if (option == "--topology") {
    return names_of(topologies());
  }
  if (option == "--transport") {
    return names_of(transports());
  }
  if (option == "--task") {
    return names_of(tasks());
  }
  if (option == "--model") {
    return names_of(models());
  }
  return option == "--rule" ? names_of(aggregations()) : Names();
}

OptionWords option_words(const CLI::Option& option) {
  OptionWords words;
  const bool flag = option.get_items_expected_max() == 0;
  words.type = flag ? "" : option.get_type_name();
  words.name = option.get_positional() ? words.type : "--" + option.get_lnames().front();
  words.help = option.get_description();
  words.fallback = option.get_default_str();
  words.group = option.get_group();
  words.required = option.get_required();
  words.repeated = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll ||
                   option.get_items_expected_max() > 1;
  words.optional_value = !flag && option.get_items_expected_min() == 0;
  for (const Names& choices :
       {alternatives(words.type), registered(words.name), fixed_words(words.name)}) {
    if (!choices.empty()) {
      words.choices = choices;
    }
  }
  return words;
}

CommandWords words_below(const CLI::App& app, std::vector<std::string> path) {
  CommandWords words;
  path.push_back(app.get_name());
  words.path = std::move(path);
  words.help = app.get_description();
  words.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) {  // those without one are hidden
      (option->get_positional() ? words.positionals : words.options)
          .push_back(option_words(*option));
    }
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    words.commands.push_back(words_below(*command, words.path));
  }
  return words;
}

}  // namespace

bool OptionWords::is_path() const {
  return type.find("FILE") != std::string::npos || type.find("DIR") != std::string::npos ||
         type.find(".toml") != std::string::npos || type.find(".csv") != std::string::npos;
}

std::string CommandWords::name(const std::string& between) const {
  return fmt::format("{}", fmt::join(path, between));
}

CommandWords words_of(const CLI::App& app) { return words_below(app, {}); }

std::vector<const CommandWords*> all_of(const CommandWords& root) {
  std::vector<const CommandWords*> all = {&root};
  for (const CommandWords& command : root.commands) {
    const auto below = all_of(command);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

}  // namespace sotto::cli

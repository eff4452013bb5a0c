#include "run_words.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/nearest.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/topology/registry.h>

namespace sotto::cli {
namespace {

/// Settings of a whole comparison.
constexpr std::array<std::string_view, 4> kShared = {"--json", "--quiet", "--config", "--local"};

template <typename Infos>
bool lists(const Infos& infos, std::string_view name) {
  return std::any_of(infos.begin(), infos.end(),
                     [&](const auto& info) { return info.name == name; });
}

/// "weight_decay=0.1" → "--weight-decay=0.1"
std::string as_option(std::string word) {
  const auto equals = static_cast<std::ptrdiff_t>(word.find('='));
  std::replace(word.begin(), word.begin() + equals, '_', '-');
  return "--" + word;
}

std::string_view name_of(std::string_view setting) { return setting.substr(0, setting.find('=')); }

bool is_length(std::string_view setting) {
  return name_of(setting) == "--rounds" || name_of(setting) == "--epochs";
}

/// "lazy" → "write lazy=true"; empty for a word that is no setting.
std::string as_setting(const std::string& word) {
  TrainOptions unused;
  CLI::App command;
  add_train_options(command, unused);
  const std::string name = as_option(word + "=");
  const auto* option = command.get_option_no_throw(name.substr(0, name.size() - 1));
  if (option == nullptr) {
    return "";
  }
  const bool flag = option->get_expected_min() == 0;
  return fmt::format("write {}={}", word, flag ? "true" : option->get_type_name());
}

[[noreturn]] void refuse_word(std::string_view words, const std::string& word) {
  if (const std::string setting = as_setting(word); !setting.empty()) {
    refuse("--run", words, fmt::format("'{}' has no value; {}", word, setting));
  }
  auto names = names_of(compressors());
  const auto graphs = names_of(topologies());
  names.insert(names.end(), graphs.begin(), graphs.end());
  refuse("--run", words,
         fmt::format("'{}' is neither a compressor nor a topology, nor a setting as "
                     "NAME=VALUE{} see `sotto list`",
                     word, did_you_mean(family(word), names)));
}

/// Each word as the option of `sotto train` that it stands for; the first is the algorithm.
std::vector<std::string> as_options(std::string_view words) {
  std::vector<std::string> settings;
  std::istringstream in{std::string(words)};
  for (std::string word; in >> word;) {
    const std::string_view name = family(word);
    if (settings.empty()) {
      settings.push_back("--algorithm=" + word);
    } else if (lists(compressors(), name)) {
      settings.push_back("--compressor=" + word);
    } else if (lists(topologies(), name)) {
      settings.push_back("--topology=" + word);
    } else if (const auto equals = word.find('='); equals != std::string::npos && equals > 0) {
      settings.push_back(as_option(word));
    } else {
      refuse_word(words, word);
    }
  }
  return settings;
}

void check_settings(std::string_view words, const std::vector<std::string>& settings,
                    const CLI::App& command) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    known.push_back(option->get_name());
  }
  for (auto setting = settings.begin(); setting != settings.end(); ++setting) {
    const std::string_view name = name_of(*setting);
    if (std::find(kShared.begin(), kShared.end(), name) != kShared.end()) {
      refuse("--run", words, fmt::format("give {} to compare, for all runs", name));
    }
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      refuse("--run", words,
             fmt::format("there is no setting {}{} `sotto train --help` shows all", name.substr(2),
                         did_you_mean(name, known)));
    }
    const auto again = std::find_if(settings.begin(), setting, [&](const std::string& other) {
      return name_of(other) == name;
    });
    if (again != setting) {
      refuse("--run", words,
             fmt::format("it has two values for {}: {} and {}", name,
                         again->substr(name.size() + 1), setting->substr(name.size() + 1)));
    }
  }
}

}  // namespace

TrainOptions parse_run(std::string_view words, const TrainOptions& shared) {
  TrainOptions options = shared;
  std::vector<std::string> settings = as_options(words);
  if (settings.empty()) {
    refuse("--run", words, "it starts with an algorithm, e.g. \"dcd quant:8 ring lr=0.05\"");
  }
  const std::string_view algorithm = std::string_view(settings.front()).substr(12);
  static_cast<void>(algorithm_info(algorithm));  // refuse what is none
  options.compressor.clear();
  for (const std::string& setting : settings) {
    if (is_length(setting)) {
      options.rounds.reset();  // the run's own length replaces the shared one
      options.epochs.reset();
    }
  }
  CLI::App command;
  add_train_options(command, options);
  check_settings(words, settings, command);
  std::reverse(settings.begin(), settings.end());  // as CLI11 takes them
  try {
    command.parse(settings);
  } catch (const CLI::ParseError& error) {
    refuse("--run", words, error.what());
  }
  return options;
}

std::vector<std::string> train_words(std::string_view words,
                                     const std::vector<std::string>& shared) {
  static_cast<void>(parse_run(words, {}));  // refuse what is wrong
  const std::vector<std::string> own = as_options(words);
  const bool own_length = std::any_of(own.begin(), own.end(), is_length);
  std::vector<std::string> all;
  for (const std::string& setting : shared) {
    const bool again = std::any_of(own.begin(), own.end(), [&](const std::string& other) {
      return name_of(other) == name_of(setting);
    });
    if (!again && !(own_length && is_length(setting))) {
      all.push_back(setting);
    }
  }
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

}  // namespace sotto::cli

#include <sotto/study/train/run_spec.h>

#include <algorithm>
#include <array>
#include <sstream>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/study/internal/setting_text.h>
#include <sotto/study/train/auto_compressor.h>
#include <sotto/topology/registry.h>

namespace sotto::study {
namespace {

/// Settings of a whole comparison.
constexpr std::array<std::string_view, 4> kShared = {"json", "quiet", "config", "local"};
/// Settings that a run's words give by the value alone.
constexpr std::array<std::string_view, 3> kUnnamed = {"algorithm", "compressor", "topology"};

template <typename Infos>
bool lists(const Infos& infos, std::string_view name) {
  return std::any_of(infos.begin(), infos.end(),
                     [&](const auto& info) { return info.name == name; });
}

/// "lazy" → "write lazy=true"; empty for a word that is no setting.
std::string as_setting(const std::string& word) {
  TrainOptions unused;
  const auto groups = train_settings(unused);
  const Setting* setting = find_setting(groups, word);
  return setting == nullptr
             ? ""
             : fmt::format("write {}={}", word, is_switch(*setting) ? "true" : setting->type);
}

[[noreturn]] void refuse_word(std::string_view words, const std::string& word) {
  if (const std::string setting = as_setting(word); !setting.empty()) {
    refuse("run", words, fmt::format("'{}' has no value; {}", word, setting));
  }
  auto names = names_of(compressors());
  const auto graphs = names_of(topologies());
  names.insert(names.end(), graphs.begin(), graphs.end());
  refuse("run", words,
         fmt::format("'{}' is neither a compressor nor a topology, nor a setting as "
                     "NAME=VALUE{} see `sotto list`",
                     word, did_you_mean(family_name(word), names)));
}

/// "weight_decay=0.1"
RunSetting read_setting(const std::string& word, std::size_t equals) {
  return {dashed(word.substr(0, equals)), word.substr(equals + 1)};
}

/// What each word sets; the first is the algorithm.
std::vector<RunSetting> read_settings(std::string_view words) {
  std::vector<RunSetting> settings;
  std::istringstream in{std::string(words)};
  for (std::string word; in >> word;) {
    const std::string_view name = family_name(word);
    if (settings.empty()) {
      settings.push_back({"algorithm", word});
    } else if (lists(compressors(), name) || compressor_budget(word)) {
      settings.push_back({"compressor", word});
    } else if (lists(topologies(), name)) {
      settings.push_back({"topology", word});
    } else if (const auto equals = word.find('='); equals != std::string::npos && equals > 0) {
      settings.push_back(read_setting(word, equals));
    } else {
      refuse_word(words, word);
    }
  }
  return settings;
}

void check_names(const RunSpec& run) {
  TrainOptions unused;
  const auto groups = train_settings(unused);
  std::vector<std::string> known;
  for (const SettingGroup& group : groups) {
    for (const Setting& setting : group.settings) {
      known.emplace_back(setting.name);
    }
  }
  for (auto setting = run.settings.begin(); setting != run.settings.end(); ++setting) {
    const std::string& name = setting->name;
    if (std::find(kShared.begin(), kShared.end(), name) != kShared.end()) {
      refuse("run", run.name, fmt::format("{} holds for all runs; give it beside them", name));
    }
    if (find_setting(groups, name) == nullptr) {
      refuse("run", run.name,
             fmt::format("there is no setting {}{} `sotto train --help` shows all", name,
                         did_you_mean(name, known)));
    }
    const auto again = std::find_if(run.settings.begin(), setting,
                                    [&](const RunSetting& other) { return other.name == name; });
    if (again != setting) {
      refuse("run", run.name,
             "it has two values for " + mention(name) +
                 fmt::format(": {} and {}", again->value, setting->value));
    }
  }
}

}  // namespace

std::string words_of(const std::vector<RunSetting>& settings) {
  std::string words;
  for (const RunSetting& setting : settings) {
    const bool unnamed = std::ranges::find(kUnnamed, setting.name) != kUnnamed.end();
    words += words.empty() ? "" : " ";
    words += unnamed ? setting.value : fmt::format("{}={}", setting.name, setting.value);
  }
  return words;
}

const std::string* RunSpec::find(std::string_view setting) const {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const RunSetting& one) { return one.name == setting; });
  return found == settings.end() ? nullptr : &found->value;
}

RunSpec RunSpec::with(std::string_view setting, std::string_view value) const {
  RunSpec more = *this;
  more.name += fmt::format(" {}={}", setting, value);
  more.settings.push_back({std::string(setting), std::string(value)});
  return more;
}

RunSpec run_of(std::string_view algorithm, std::string_view compressor, std::string_view topology) {
  std::vector<RunSetting> settings = {{"algorithm", std::string(algorithm)}};
  for (const auto& [name, value] :
       {std::pair("compressor", compressor), std::pair("topology", topology)}) {
    if (!value.empty()) {
      settings.push_back({name, std::string(value)});
    }
  }
  return {words_of(settings), settings};
}

RunSpec parse_run(std::string_view words) {
  RunSpec run = {std::string(words), read_settings(words)};
  if (run.settings.empty()) {
    refuse("run", words, "it starts with an algorithm, e.g. \"dcd quant:8 ring lr=0.05\"");
  }
  (void)algorithm_info(run.algorithm());  // refuse what is none
  check_names(run);
  return run;
}

TrainOptions with_run(const TrainOptions& shared, const RunSpec& run) {
  check_names(run);
  TrainOptions options = shared;
  options.compressor.clear();
  if (run.find("epochs") != nullptr && run.find("rounds") != nullptr) {
    refuse("run", run.name, mention("epochs") + " excludes " + mention("rounds"));
  }
  if (run.find("epochs") != nullptr || run.find("rounds") != nullptr) {
    options.rounds.reset();
    options.epochs.reset();
  }
  const auto groups = train_settings(options);
  for (const RunSetting& setting : run.settings) {
    const Setting* known = find_setting(groups, setting.name);
    if (const auto why = assign(*known, setting.value)) {
      refuse("run", run.name, mention(setting.name) + ": " + *why);
    }
  }
  return options;
}

std::vector<RunSetting> joined_settings(const RunSpec& run, const std::vector<RunSetting>& shared) {
  (void)with_run({}, run);  // refuse what is wrong
  const auto& own = run.settings;
  const bool own_length = std::ranges::any_of(own, &RunSetting::is_length);
  std::vector<RunSetting> all;
  for (const RunSetting& setting : shared) {
    if (run.find(setting.name) == nullptr && !(own_length && setting.is_length())) {
      all.push_back(setting);
    }
  }
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

}  // namespace sotto::study

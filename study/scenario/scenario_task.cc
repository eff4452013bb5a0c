// The settings that hold for all runs of a scenario: [task].
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/study/internal/setting_text.h>
#include <sotto/study/internal/task_settings.h>
#include <sotto/study/scenario/internal/task.h>

namespace sotto::study {
namespace {

/// The settings that a task may have, in their order.
std::vector<const Setting*> task_settings(const std::vector<SettingGroup>& groups) {
  std::vector<const Setting*> settings;
  for (const SettingGroup& group : groups) {
    for (const Setting& setting : group.settings) {
      if (stands_in_task(setting)) {
        settings.push_back(&setting);
      }
    }
  }
  return settings;
}

/// Reads the keys of one table, each once.
class TaskReader {
 public:
  TaskReader(const std::string& path, TrainOptions& task)
      : path_(path), groups_(train_settings(task)), settings_(task_settings(groups_)) {}

  void read(const std::string& key, const toml::node& value) {
    const std::string where = toml_place(path_, value);
    const Setting* setting = find_setting(groups_, key);
    if (setting == nullptr || !stands_in_task(*setting)) {
      refuse_unknown(where, key);
    }
    if (const auto first = lines_.find(setting); first != lines_.end()) {
      throw Error(
          fmt::format("{}: '{}' is what line {} says already: dashes and underscores are one",
                      where, key, first->second));
    }
    check_rival(*setting, where, key);
    lines_.emplace(setting, value.source().begin.line);
    check_type(*setting, value, where, key);
    const std::string text = toml_value_text(value, where, key);
    if (const auto why = assign(*setting, text)) {
      throw Error(fmt::format("{}: '{}': {}", where, key, *why));
    }
    given_[setting] = text;
  }

  /// The settings that were given, in the order of all settings.
  std::vector<RunSetting> given() const {
    std::vector<RunSetting> given;
    for (const Setting* setting : settings_) {
      if (const auto text = given_.find(setting); text != given_.end()) {
        given.push_back({std::string(setting->name), text->second});
      }
    }
    return given;
  }

 private:
  [[noreturn]] void refuse_unknown(const std::string& where, const std::string& written) const {
    const std::string key = dashed(written);
    std::vector<std::string> known;
    for (const Setting* setting : settings_) {
      known.emplace_back(setting->name);
    }
    throw Error(fmt::format("{}: '{}' is no setting of `sotto simulate`{} there are {}", where, key,
                            did_you_mean(key, known), fmt::join(known, ", ")));
  }

  /// A run is as long as its rounds say, or its epochs.
  void check_rival(const Setting& setting, const std::string& where, const std::string& key) const {
    const std::string_view rival = setting.name == "epochs"   ? "rounds"
                                   : setting.name == "rounds" ? "epochs"
                                                              : "";
    const auto first =
        std::ranges::find_if(lines_, [&](const auto& line) { return line.first->name == rival; });
    if (first != lines_.end()) {
      throw Error(fmt::format("{}: '{}' cannot stand beside '{}' in line {}", where, key, rival,
                              first->second));
    }
  }

  /// Text does not pass for a number, nor for true or false.
  static void check_type(const Setting& setting, const toml::node& value, const std::string& where,
                         const std::string& key) {
    if (value.is_string() && is_switch(setting)) {
      throw Error(fmt::format("{}: '{}' must be true or false, without quotes", where, key));
    }
    if (value.is_string() && is_numeric(setting)) {
      throw Error(fmt::format("{}: '{}' must be a number, without quotes", where, key));
    }
  }

  const std::string& path_;
  const std::vector<SettingGroup> groups_;
  const std::vector<const Setting*> settings_;
  std::map<const Setting*, unsigned> lines_;
  std::map<const Setting*, std::string> given_;
};

}  // namespace

void read_task(const toml::table& file, const std::string& path, Scenario& scenario) {
  const auto* table = file.get_as<toml::table>("task");
  if (table == nullptr) {
    return;
  }
  TaskReader reader(path, scenario.task);
  for (const auto& [key, value] : *table) {
    reader.read(std::string(key.str()), value);
  }
  scenario.task_settings = reader.given();
  for (const auto& [key, value] : *table) {
    scenario.task_places.emplace(
        dashed(key.str()),
        fmt::format("{}: task.{}", toml_place(path, value), std::string(key.str())));
  }
}

}  // namespace sotto::study

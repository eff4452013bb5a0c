#include "setting_pairs.h"

#include <fmt/format.h>

#include <sotto/base/names.h>
#include <sotto/base/text.h>
#include <sotto/trainers/settings/optimizer_settings.h>

namespace sotto::c {

std::string field_named(std::string_view name) {
  std::string field(excerpt(name));
  if (!name.starts_with(kJob)) {
    std::ranges::replace(field, '-', '_');
  }
  return field;
}

std::string setting_name(std::string_view name) {
  return name.starts_with(kJob) ? std::string(name) : dashed(name);
}

bool take_job_entry(const std::string& name, const std::string& value, AgreedSettings& job) {
  if (!name.starts_with(kJob) || name.size() == kJob.size()) {
    return false;
  }
  if ((name + value).find('\n') != std::string::npos) {
    refuse(name, excerpt(value), "it holds a line break");
  }
  if (name.find('=') != std::string::npos) {
    refuse("name", excerpt(name), "an entry of the job has no '=' in its name");
  }
  job.emplace_back(name.substr(kJob.size()), value);
  return true;
}

void require_no_step_settings(const std::vector<std::string>& given,
                              const std::vector<std::string_view>& kept) {
  OptimizerSettings all;
  for (const SettingGroup& group : settings_of(all)) {
    const auto has = [&](std::string_view name) {
      return std::ranges::find(group.settings, name, &Setting::name) != group.settings.end();
    };
    if (!has("step-rule")) {
      continue;
    }
    for (const std::string& name : given) {
      if (has(name) && std::ranges::find(kept, name) == kept.end()) {
        throw Error(field_named(name),
                    "the step rule is the caller's own, and has its own settings: leave it out");
      }
    }
  }
}

std::vector<std::string> names_in(const std::vector<SettingGroup>& groups) {
  std::vector<std::string> names;
  for (const SettingGroup& group : groups) {
    for (const Setting& setting : group.settings) {
      names.emplace_back(setting.name);
    }
  }
  return names;
}

void refuse_setting(std::string_view name, const std::vector<std::string>& names,
                    std::string_view where) {
  throw Error(field_named(name),
              fmt::format("there is no such setting{} {}", did_you_mean(name, names), where));
}

void set_listed(const std::vector<SettingGroup>& groups, std::string_view kind,
                std::string_view name, std::string_view value) {
  if (!set(groups, name, value)) {
    refuse_setting(
        name, names_in(groups),
        fmt::format("sotto_list(\"{0}\") names them, in Python sotto.choices(\"{0}\")", kind));
  }
}

}  // namespace sotto::c

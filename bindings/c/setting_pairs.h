// Settings as C hands them over, names and values in turn up to a null pointer. Pure functions;
// thread-safe.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/error.h>
#include <sotto/base/setting.h>
#include <sotto/trainers/settings/agreed_settings.h>

namespace sotto::c {

// What sotto_list calls the settings of each object.
inline constexpr std::string_view kNodeSettings = "settings";
inline constexpr std::string_view kSiteSettings = "site-settings";
inline constexpr std::string_view kElasticSettings = "elastic-settings";

/// What names of entries of the job begin with.
inline constexpr std::string_view kJob = "job.";

/// What errors call the setting `name`: "weight_decay". An entry of the job has the caller's own.
std::string field_named(std::string_view name);

/// With dashes; entries of the job, whose names are the caller's own, as they are.
std::string setting_name(std::string_view name);

/// Appends an entry of the job to `job`; false where `name` is that of none. Throws Error for one
/// that nodes could not compare.
bool take_job_entry(const std::string& name, const std::string& value, AgreedSettings& job);

/// For a node whose step rule is the caller's own: throws Error for a setting of the local step
/// among those of `given`, names with dashes, as it would be without effect; but not for those of
/// `kept`.
void require_no_step_settings(const std::vector<std::string>& given,
                              const std::vector<std::string_view>& kept);

/// Hands each pair to `take(name, value)`, which says whether the name may come again; names are as
/// setting_name makes them. Throws Error for a name without value or given twice.
template <typename Take>
void read_pairs(const char* const* settings, const Take& take) {
  std::vector<std::string> given;
  for (; settings != nullptr && *settings != nullptr; settings += 2) {
    const std::string name = setting_name(settings[0]);
    if (settings[1] == nullptr) {
      throw Error(field_named(name), "its value is missing; names and values come in turn");
    }
    if (std::ranges::find(given, name) != given.end()) {
      throw Error(field_named(name), "it is given twice");
    }
    if (!take(name, settings[1])) {
      given.push_back(name);
    }
  }
}

/// The names of settings, in their order.
std::vector<std::string> names_in(const std::vector<SettingGroup>& groups);

/// Refuses a name that is none of `names`, which `where` lists. Throws Error.
[[noreturn]] void refuse_setting(std::string_view name, const std::vector<std::string>& names,
                                 std::string_view where);

/// Sets the one of `groups`, which sotto_list(`kind`) lists, that is called `name`. Throws Error
/// for a name that is none, and for a value that cannot be read.
void set_listed(const std::vector<SettingGroup>& groups, std::string_view kind,
                std::string_view name, std::string_view value);

}  // namespace sotto::c

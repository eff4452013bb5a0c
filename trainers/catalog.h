// Lists algorithms, compressors, settings and so on as JSON, for `sotto list` and for other
// languages. Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/setting.h>

namespace sotto {

/// The registries: "algorithms", "rules", "compressors", "topologies", "transports", "tasks" and
/// "models".
std::vector<std::string_view> catalog_kinds();

/// The entries of one of them in its order, an array of objects. Throws Error for any other kind.
std::string catalog_json(std::string_view kind);

/// The settings in their order, an array of objects: name, type, default (null: it depends on
/// others, or there is none), group and help.
std::string settings_json(std::span<const SettingGroup> groups);

}  // namespace sotto

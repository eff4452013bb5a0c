// What there is to choose from, as JSON: for lists and for other languages. Pure functions;
// thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <sotto/trainers/optimizer_settings.h>

namespace sotto {

/// The entries of one registry in its order, an array of objects: "algorithms", "rules",
/// "compressors", "topologies", "transports", "tasks" or "models". Throws Error for any other kind.
std::string catalog_json(std::string_view kind);

/// The settings in their order, an array of objects: name, type, default (null: it depends on
/// others, or there is none), group and help.
std::string settings_json(std::span<const SettingGroup> groups);

}  // namespace sotto

#include <sotto/trainers/catalog.h>

#include <variant>

#include <sotto/base/json.h>
#include <sotto/base/json_text.h>
#include <sotto/trainers/json/catalog_items.h>

namespace sotto {
namespace {

/// null where it depends on other settings.
Json default_of(const SettingValue& value) {
  return std::visit(
      [](const auto* held) {
        if constexpr (requires { held->has_value(); }) {
          return Json();
        } else if constexpr (requires { held->empty(); }) {
          return held->empty() ? Json() : Json(*held);
        } else {
          return Json(*held);
        }
      },
      value);
}

}  // namespace

std::vector<std::string_view> catalog_kinds() { return catalog_names(); }

std::string catalog_json(std::string_view kind) { return json_text(catalog_items(kind)); }

std::string settings_json(std::span<const SettingGroup> groups) {
  Json items = Json::array();
  for (const SettingGroup& group : groups) {
    for (const Setting& setting : group.settings) {
      items.push_back(
          {{"name", setting.name},
           {"type", setting.type.empty() ? std::string_view("true|false") : setting.type},
           {"default", default_of(setting.value)},
           {"group", group.title},
           {"help", setting.help}});
    }
  }
  return json_text(items);
}

}  // namespace sotto

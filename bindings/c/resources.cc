// sotto_list, and the objects that an optimizer is made with: sotto_layout, sotto_store and
// sotto_interrupt.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/sites/elastic/elastic_settings.h>
#include <sotto/sites/process/site_settings.h>
#include <sotto/trainers/catalog.h>
#include <sotto/trainers/optimizer.h>

#include "guard.h"
#include "handles.h"
#include "setting_pairs.h"
#include "settings.h"

using namespace sotto;     // NOLINT(google-build-using-namespace)
using namespace sotto::c;  // NOLINT(google-build-using-namespace)

namespace {

/// The settings of objects, beside what the catalog lists.
struct SettingKind {
  std::string_view name;
  std::string (*json)();
};

template <typename Settings>
std::string listed_settings() {
  Settings settings;
  return settings_json(settings_of(settings));
}

constexpr std::array kSettingKinds = {
    SettingKind{kNodeSettings,
                [] {
                  NodeSettings settings;
                  return settings_json(groups_of(settings));
                }},
    SettingKind{kSiteSettings, listed_settings<SiteSettings>},
    SettingKind{kElasticSettings, listed_settings<ElasticSettings>},
};

}  // namespace

sotto_status sotto_list(const char* kind, char** json) {
  return guarded([&] {
    need(kind, "kind");
    need(json, "json");
    for (const SettingKind& settings : kSettingKinds) {
      if (settings.name == kind) {
        return give(settings.json(), json);
      }
    }
    const auto listed = catalog_kinds();
    std::vector<std::string> kinds(listed.begin(), listed.end());
    if (std::ranges::find(kinds, kind) == kinds.end()) {
      for (const SettingKind& settings : kSettingKinds) {
        kinds.emplace_back(settings.name);
      }
      refuse_unknown("kind", excerpt(kind), kinds);
    }
    return give(catalog_json(kind), json);
  });
}

sotto_status sotto_layout_create(sotto_layout** out) {
  return guarded([&] {
    need(out, "out");
    *out = new sotto_layout();
    return SOTTO_OK;
  });
}

sotto_status sotto_layout_add(sotto_layout* layout, const char* name, size_t dimensions,
                              const size_t* shape) {
  return guarded([&] {
    need(layout, "layout");
    need(name, "name");
    const auto sizes = span_at(shape, dimensions, "shape");
    if (std::string_view(name).find('\n') != std::string_view::npos) {
      refuse("name", excerpt(name), "it holds a line break");
    }
    append_block(layout->blocks, name, {sizes.begin(), sizes.end()});
    return SOTTO_OK;
  });
}

void sotto_layout_destroy(sotto_layout* layout) { delete layout; }

sotto_status sotto_store_create(sotto_store** out) {
  return guarded([&] {
    need(out, "out");
    *out = new sotto_store{make_memory_store()};
    return SOTTO_OK;
  });
}

void sotto_store_destroy(sotto_store* store) { delete store; }

sotto_status sotto_interrupt_create(sotto_interrupt** out) {
  return guarded([&] {
    need(out, "out");
    *out = new sotto_interrupt();
    return SOTTO_OK;
  });
}

sotto_status sotto_interrupt_raise(sotto_interrupt* interrupt) {
  return at_any_time(interrupt, [&] { *interrupt->flag = true; });
}

void sotto_interrupt_destroy(sotto_interrupt* interrupt) { delete interrupt; }

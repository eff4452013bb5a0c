#include "site_places.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/names.h>
#include <sotto/base/text.h>
#include <sotto/study/site/site_file.h>

namespace sotto::cli {
namespace {

/// What stands elsewhere in a site's file, under another name or whether it is given or not.
constexpr auto kElsewhere =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"bind", "listen"},
                                                                  {"source", "source"},
                                                                  {"key", "key"},
                                                                  {"peers", "peers"},
                                                                  {"timeout", "network.timeout"},
                                                                  {"part", "training.part"},
                                                                  {"scaling", "data.scaling"},
                                                                  {"own-sums", "data.own-sums"},
                                                                  {"export", "training.export"}});

}  // namespace

SitePlaces::SitePlaces(std::string path, const toml::table& file) : path_(std::move(path)) {
  for (const auto& [key, value] : file) {
    lines_[std::string(key.str())] = value.source().begin.line;
    if (const auto* table = value.as_table()) {
      for (const auto& [inner, setting] : *table) {
        const std::string name = fmt::format("{}.{}", key.str(), dashed(inner.str()));
        lines_[name] = setting.source().begin.line;
      }
    }
  }
}

std::string SitePlaces::of(const std::string& key) const {
  auto found = lines_.find(key);
  if (found == lines_.end()) {
    found = lines_.find(key.substr(0, key.find('.')));
  }
  return found == lines_.end() ? fmt::format("{}: {}", path_, key)
                               : fmt::format("{}:{}: {}", path_, found->second, key);
}

std::string SitePlaces::line_of(std::string_view setting) const {
  const auto found = lines_.find(key_of(setting));
  return found == lines_.end() ? "" : fmt::format("{}:{}", path_, found->second);
}

std::string SitePlaces::subject(std::string_view setting) const {
  const std::string key = key_of(setting);
  return key.empty() ? std::string(setting) : of(key);
}

std::string SitePlaces::mention(std::string_view setting, std::string_view value) const {
  const std::string key = key_of(setting);
  const std::string name = key.empty() ? std::string(setting) : key;
  return value.empty() ? name : fmt::format("{} = {}", name, toml_value(value));
}

std::string SitePlaces::blame(const Error& error) const {
  const std::string message = error.render(*this);
  return key_of(error.field()).empty() ? fmt::format("{}: {}", of("training"), message) : message;
}

std::string SitePlaces::key_of(std::string_view setting) const {
  const std::string name = dashed(setting);
  if (study::is_training_setting(name)) {
    return "training." + name;
  }
  const auto* const found =
      std::ranges::find(kElsewhere, name, &std::pair<std::string_view, std::string_view>::first);
  if (found != kElsewhere.end()) {
    return std::string(found->second);
  }
  for (const std::string& known : {name, "training." + name, "network." + name}) {
    if (lines_.contains(known)) {
      return known;
    }
  }
  return {};
}

}  // namespace sotto::cli

#include "site_places.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/number.h>
#include <sotto/trainers/optimizer_settings.h>

namespace sotto::cli {
namespace {

/// The settings of `sotto train` that a site's [training] has, besides those of its step rule.
constexpr auto kTraining = std::to_array<std::string_view>(
    {"task", "model", "batch", "partition", "gradient-time", "init", "algorithm", "compressor",
     "consensus-stepsize", "rule", "noise-multiplier", "privacy-epsilon", "privacy-delta",
     "privacy-unit", "communication-interval", "rounds", "eval-every", "dump-parameters", "seed"});

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

/// "weight_decay" → "weight-decay"
std::string dashed(std::string_view setting) {
  std::string name(setting);
  std::ranges::replace(name, '_', '-');
  return name;
}

/// A value as TOML has it.
std::string value_text(std::string_view value) {
  const bool bare = value == "true" || value == "false" || parse_number<double>(value).has_value();
  return bare ? std::string(value) : toml_text(value);
}

}  // namespace

bool is_training_setting(std::string_view name) {
  OptimizerSettings settings;
  return std::ranges::find(kTraining, name) != kTraining.end() ||
         std::ranges::any_of(step_settings(settings).settings,
                             [&](const Setting& one) { return one.name == name; });
}

SitePlaces::SitePlaces(std::string path, const toml::table& file) : path_(std::move(path)) {
  for (const auto& [key, value] : file) {
    lines_[std::string(key.str())] = value.source().begin.line;
    if (const auto* table = value.as_table()) {
      for (const auto& [inner, setting] : *table) {
        std::string name(inner.str());
        std::ranges::replace(name, '_', '-');
        lines_[fmt::format("{}.{}", key.str(), name)] = setting.source().begin.line;
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

std::string SitePlaces::subject(std::string_view setting) const {
  const std::string key = key_of(setting);
  return key.empty() ? std::string(setting) : of(key);
}

std::string SitePlaces::mention(std::string_view setting, std::string_view value) const {
  const std::string key = key_of(setting);
  const std::string name = key.empty() ? std::string(setting) : key;
  return value.empty() ? name : fmt::format("{} = {}", name, value_text(value));
}

std::string SitePlaces::blame(const Error& error) const {
  const std::string message = error.render(*this);
  const bool placed = !key_of(error.field()).empty() || message.starts_with(path_ + ":");
  return placed ? message : fmt::format("{}: {}", of("training"), message);
}

std::string SitePlaces::key_of(std::string_view setting) const {
  const std::string name = dashed(setting);
  if (is_training_setting(name)) {
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

#include <sotto/study/site/site_file.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/name_length.h>
#include <sotto/base/names.h>
#include <sotto/study/internal/setting_text.h>
#include <sotto/study/toml/reader.h>
#include <sotto/study/train/train_options.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

constexpr std::uint64_t kFormat = 1;

constexpr double kShortest = 0.001;     // seconds
constexpr double kLongest = 24 * 3600;  // seconds

/// "30 s" as a span's setting has it.
double parse_seconds(const std::string& text) {
  const double seconds =
      std::chrono::duration<double>(std::chrono::nanoseconds(parse_duration(text))).count();
  if (!(seconds >= kShortest && seconds <= kLongest)) {
    throw Error(fmt::format("'{}' is refused: 1 ms to 24 h", text));
  }
  return seconds;
}

void read_names(TomlReader& in, SiteSettings& settings) {
  in.require("name", "the site's name, as in the others' lists of peers");
  in.require("key", "the site's key, a file that `sotto keygen` makes");
  in.require("peers", "the file of peers: who they are, and whom this site trusts");
  in.require("state", "the folder in which the site keeps its state");
  settings.names.name = *in.text("name");
  if (settings.names.name.empty() || settings.names.name.size() > kMostNameBytes) {
    in.refuse("name", fmt::format("it has 1 to {} bytes", kMostNameBytes));
  }
  for (const auto& [key, value] :
       {std::pair{"key", &settings.names.key}, {"peers", &settings.names.peers}}) {
    *value = in.beside(*in.text(key));
    if (value->empty()) {
      in.refuse(key, "it is empty");
    }
  }
  settings.state = in.beside(*in.text("state"));
  settings.names.listen = in.text("listen").value_or("");
  settings.source = in.text("source").value_or("");
  settings.outputs.audit = in.beside(in.text("audit").value_or(""));
  const auto as_written = [](const std::string& text) { return text; };
  settings.outputs.monitor = in.parsed("monitor", as_written).value_or("");
  settings.observer = in.truth("observer").value_or(false);
}

/// Settings of `sotto node` that say on which data it trains, and what it makes of the model.
constexpr auto kOfData =
    std::to_array<std::string_view>({"task", "model", "batch", "partition", "part", "gradient-time",
                                     "init", "eval-every", "dump-parameters", "export"});
/// Settings that hide gradients, which nobody may leave out unseen.
constexpr auto kOfPrivacy = std::to_array<std::string_view>(
    {"privacy-epsilon", "noise-multiplier", "privacy-delta", "privacy-unit"});

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void read_training(const toml::table& table, const std::string& path, SiteSettings& settings) {
  const std::vector<SettingGroup> groups = {shared_settings_of(settings)};
  for (const auto& [key, value] : table) {
    const std::string name = dashed(key.str());
    const std::string place = fmt::format("{}: training.{}", toml_place(path, value), name);
    if (is_among(kOfData, name)) {
      continue;
    }
    if (is_among(kOfPrivacy, name)) {
      throw Error(
          fmt::format("{}: the gradients of a program's own model are not hidden by a "
                      "site's file: set SiteOptions::privacy, or leave it out",
                      place));
    }
    bool known = false;
    try {
      known = set(groups, name, toml_value_text(value, place, key.str()));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", place, error.what()));
    }
    if (!known) {
      std::vector<std::string> names;
      for (const Setting& setting : groups[0].settings) {
        names.emplace_back(setting.name);
      }
      throw Error(fmt::format("{}: there is no such setting{} docs/operations.md has them", place,
                              did_you_mean(name, names)));
    }
  }
}

void read_network(TomlReader in, SiteSettings& settings) {
  const std::initializer_list<std::string_view> plain = {
      "slack",       "save-every",  "window",    "secure-sum",  "secure-colluders", "secure-range",
      "mass-return", "parcel-mass", "pull-most", "pull-memory", "pull-fresh"};
  in.allow(plain);
  for (const auto& [key, value] : {std::pair{"timeout", &settings.timeout_s},
                                   {"patience", &settings.patience_s},
                                   {"found-after", &settings.found_after_s}}) {
    *value = in.parsed(key, parse_seconds).value_or(*value);
  }
  const auto as_written = [](const std::string& text) { return text; };
  settings.own_steps = in.parsed("own-steps", as_written).value_or(settings.own_steps);
  settings.step_weighting = in.text("step-weighting").value_or(settings.step_weighting);
  const auto groups = settings_of(settings);
  for (const std::string_view key : plain) {
    if (in.has(key)) {
      const std::string text = is_switch(*find_setting(groups, key))
                                   ? fmt::to_string(*in.truth(key))
                                   : fmt::to_string(*in.number(key));
      in.at(key, [&] { (void)set(groups, key, text); });
    }
  }
  in.finish();
}

}  // namespace

SiteSettings read_site(TomlReader& in) {
  in.require("sotto-site", "the version of this format, sotto-site = 1");
  (void)in.count("sotto-site", kFormat, kFormat);
  SiteSettings settings;
  read_names(in, settings);
  if (auto network = in.table("network")) {
    read_network(std::move(*network), settings);
  }
  return settings;
}

SiteSettings read_site_file(const std::string& path) {
  const toml::table file = read_toml("site", path);
  TomlReader in(path, "", file);
  SiteSettings settings = read_site(in);
  if (const auto* training = file.get_as<toml::table>("training")) {
    read_training(*training, path, settings);
  }
  in.allow({"training", "data"});
  in.finish();
  return settings;
}

bool is_training_setting(std::string_view name) {
  TrainOptions train;
  SiteSettings site;
  return find_setting(train_settings(train), name) != nullptr &&
         (find_setting({shared_settings_of(site)}, name) != nullptr || is_among(kOfData, name) ||
          is_among(kOfPrivacy, name));
}

}  // namespace sotto::study

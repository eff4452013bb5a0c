#include "site_config.h"

#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/study/site/site_file.h>
#include <sotto/study/toml/reader.h>

#include "config_file.h"
#include "train/train_flags.h"

namespace sotto::cli {
namespace {

constexpr int kMostParts = 1'000'000;

/// "csv:data.csv" → "csv:FOLDER/data.csv"
std::string task_beside(const study::TomlReader& in, const std::string& task) {
  const auto colon = task.find(':');
  return colon == std::string::npos ? task
                                    : task.substr(0, colon + 1) + in.beside(task.substr(colon + 1));
}

int parse_place(std::string_view text, int most) {
  const auto value = parse_number<int>(text, 1, most);
  if (!value) {
    throw Error(fmt::format("'{}' is no whole number from 1 to {}", text, most));
  }
  return *value;
}

DataPart parse_part(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) {
    throw Error(fmt::format("'{}': write NUMBER/OF, e.g. 3/8", text));
  }
  DataPart part;
  part.of = parse_place(std::string_view(text).substr(slash + 1), kMostParts);
  part.number = parse_place(std::string_view(text).substr(0, slash), part.of);
  return part;
}

void read_training(const study::TomlReader& in, const toml::table& table, SiteConfig& config) {
  CLI::App command("", "node");
  TrainFlags flags;
  static_cast<OptimizerSettings&>(flags) = config.site.training;  // their defaults
  add_train_options(command, flags);
  for (CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (!study::is_training_setting(name.substr(2)) && name != command.get_help_ptr()->get_name()) {
      command.remove_option(option);
    }
  }
  std::string part;
  command.add_option("--part", part);
  command.add_option("--export", config.export_file);
  apply_settings(command, table, config.file);
  config.training = flags;
  try {
    config.part = part.empty() ? DataPart() : parse_part(part);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", config.places.of("training.part"), error.what()));
  }
  study::TrainOptions& training = config.training;
  training.task = table.contains("task") ? task_beside(in, training.task) : "";
  training.init = in.beside(training.init);
  training.dump_parameters = in.beside(training.dump_parameters);
  config.export_file = in.beside(config.export_file);
  config.site.training = training;
  config.site.rounds = training.rounds.value_or(0);
  config.site.seed = training.seed;
}

}  // namespace

SiteConfig read_site_config(const std::string& path) {
  const toml::table file = study::read_toml("site", path);
  study::TomlReader in(path, "", file);
  SiteConfig config;
  config.file = path;
  config.places = SitePlaces(path, file);
  config.site = study::read_site(in);
  if (config.site.state.empty()) {
    in.refuse("state", "it is empty");
  }
  config.monitor = in.parsed("monitor", parse_monitor_address);
  in.require("training", "a table [training] with settings of `sotto train`");
  (void)in.table("training");
  read_training(in, *file.get_as<toml::table>("training"), config);
  if (auto data = in.table("data")) {
    config.training.scaling = data->beside(data->text("scaling").value_or(""));
    config.training.own_sums = data->beside(data->text("own-sums").value_or(""));
    data->finish();
  }
  in.finish();
  return config;
}

}  // namespace sotto::cli

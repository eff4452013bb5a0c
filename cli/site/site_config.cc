#include "site_config.h"

#include <filesystem>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/sites/core/mixing_kind.h>
#include <sotto/study/toml/reader.h>
#include <sotto/study/units.h>

#include "config_file.h"
#include "train/train_flags.h"

namespace sotto::cli {
namespace {

constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kLongestName = 100;
constexpr int kMostParts = 1'000'000;
constexpr std::uint64_t kMostAhead = 1024;
constexpr std::chrono::milliseconds kLongest{24 * 3600 * 1000};

/// A path of the file, as the process finds it.
std::string beside(const std::string& config, const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(config).parent_path();
  return path.empty() ? path : (folder / path).string();
}

/// "csv:data.csv" → "csv:FOLDER/data.csv"
std::string task_beside(const std::string& config, const std::string& task) {
  const auto colon = task.find(':');
  return colon == std::string::npos
             ? task
             : task.substr(0, colon + 1) + beside(config, task.substr(colon + 1));
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

std::chrono::milliseconds parse_span(const std::string& text) {
  const auto span = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::nanoseconds(study::parse_duration(text)));
  if (span.count() < 1 || span > kLongest) {
    throw Error(fmt::format("'{}' is refused: 1 ms to 24 h", text));
  }
  return span;
}

void read_network(study::TomlReader in, SiteConfig& config) {
  config.timeout = in.parsed("timeout", parse_span).value_or(config.timeout);
  config.patience = in.parsed("patience", parse_span).value_or(config.patience);
  config.found_after = in.parsed("found-after", parse_span).value_or(config.found_after);
  config.slack = in.count("slack", 0, kMostAhead).value_or(config.slack);
  config.save_every = in.count("save-every", 1, std::numeric_limits<std::uint32_t>::max())
                          .value_or(config.save_every);
  config.secure_sum = in.truth("secure-sum").value_or(config.secure_sum);
  config.sum.colluders =
      in.count("secure-colluders", 0, sites::kMostSummed).value_or(config.sum.colluders);
  config.window = in.count("window", 1, kMostAhead)
                      .value_or(usual_window(config.secure_sum ? sites::MixingKind::secure_mean
                                                               : sites::MixingKind::gossip));
  for (const auto& [key, value] : {std::pair{"mass-return", &config.mass.back},
                                   {"parcel-mass", &config.mass.parcel},
                                   {"pull-most", &config.pull.most},
                                   {"pull-memory", &config.pull.memory},
                                   {"secure-range", &config.sum.range}}) {
    *value = in.number(key).value_or(*value);
  }
  in.finish();
}

void read_training(const toml::table& table, const std::string& path, SiteConfig& config) {
  CLI::App command("", "node");
  TrainFlags flags;
  flags.algorithm = "pushsum";
  add_train_options(command, flags);
  for (CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (!is_training_setting(name.substr(2)) && name != command.get_help_ptr()->get_name()) {
      command.remove_option(option);
    }
  }
  std::string part;
  command.add_option("--part", part);
  command.add_option("--export", config.export_file);
  apply_settings(command, table, path);
  config.training = flags;
  try {
    config.part = part.empty() ? DataPart() : parse_part(part);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", config.places.of("training.part"), error.what()));
  }
  if (!table.contains("task")) {
    throw Error(fmt::format("{}: it is missing: the data to train on, e.g. \"csv:patients.csv\"",
                            config.places.of("training.task")));
  }
  study::TrainOptions& training = config.training;
  training.task = task_beside(path, training.task);
  training.init = beside(path, training.init);
  training.dump_parameters = beside(path, training.dump_parameters);
  config.export_file = beside(path, config.export_file);
}

}  // namespace

SiteConfig read_site_config(const std::string& path) {
  const toml::table file = study::read_toml("SITE.toml", path);
  study::TomlReader in(path, "", file);
  in.require("sotto-site", "the version of this format, sotto-site = 1");
  (void)in.count("sotto-site", kVersion, kVersion);
  SiteConfig config;
  config.file = path;
  config.places = SitePlaces(path, file);
  in.require("name", "the site's name, as in the others' lists of peers");
  in.require("key", "the site's key, a file that `sotto keygen` makes");
  in.require("peers", "the file of peers: who they are, and whom this site trusts");
  in.require("state", "the folder in which the site keeps its state");
  config.name = *in.text("name");
  if (config.name.empty() || config.name.size() > kLongestName) {
    in.refuse("name", fmt::format("it has 1 to {} bytes", kLongestName));
  }
  for (const auto& [key, value] :
       {std::pair{"key", &config.key}, {"peers", &config.peers}, {"state", &config.state}}) {
    *value = beside(path, *in.text(key));
    if (value->empty()) {
      in.refuse(key, "it is empty");
    }
  }
  config.listen = in.text("listen").value_or("");
  config.source = in.text("source").value_or("");
  config.audit = beside(path, in.text("audit").value_or(""));
  config.monitor = in.parsed("monitor", parse_monitor_address);
  config.observer = in.truth("observer").value_or(false);
  in.require("training", "a table [training] with settings of `sotto train`");
  (void)in.table("training");
  read_training(*file.get_as<toml::table>("training"), path, config);
  if (auto data = in.table("data")) {
    config.training.scaling = beside(path, data->text("scaling").value_or(""));
    config.training.own_sums = beside(path, data->text("own-sums").value_or(""));
    data->finish();
  }
  if (auto network = in.table("network")) {
    read_network(*network, config);
  }
  in.finish();
  return config;
}

}  // namespace sotto::cli

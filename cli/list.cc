// `sotto list`: what this build can do.
#include <algorithm>
#include <cstdint>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/sim/link_presets.h>
#include <sotto/study/train/train_options.h>
#include <sotto/study/train/train_plan.h>
#include <sotto/study/units.h>
#include <sotto/trainers/json/catalog_items.h>

#include "commands.h"

namespace sotto::cli {
namespace {

struct ListOptions {
  console::CommonOptions common;
  std::string task;
  std::string model;
};

/// One kind of thing to choose from: the JSON key, the option that takes it, and an object an item.
struct Section {
  std::string key;
  std::string option;
  /// Fields shown to people, in order; the JSON holds all.
  std::vector<std::string> columns;
  Json items = Json::array();
};

/// What the library's catalog holds, in this order.
std::vector<Section> catalog_sections() {
  std::vector<Section> sections = {
      {"algorithms", "--algorithm", {"synopsis", "contract", "graph", "summary"}},
      {"rules", "--rule, with --algorithm robust", {"synopsis", "summary"}},
      {"compressors", "--compressor", {"synopsis", "contract", "summary"}},
      {"topologies", "--topology", {"synopsis", "nodes", "summary"}},
      {"transports", "--transport", {"name", "available", "encrypts", "summary"}},
      {"tasks", "--task", {"synopsis", "default_model", "summary"}},
      {"models", "--model", {"synopsis", "summary"}},
  };
  for (Section& section : sections) {
    section.items = catalog_items(section.key);
  }
  return sections;
}

Section list_links() {
  Section section{"links",
                  "link presets of scenarios",
                  {"name", "bandwidth", "latency", "jitter", "loss", "summary"}};
  for (const LinkPreset& preset : link_presets()) {
    section.items.push_back({{"name", preset.name},
                             {"summary", preset.summary},
                             {"bandwidth", study::rate_text(preset.bytes_per_s)},
                             {"latency", study::duration_text(to_seconds(preset.latency))},
                             {"jitter", study::duration_text(to_seconds(preset.jitter))},
                             {"of_host", preset.of_host},
                             {"bytes_per_s", preset.bytes_per_s},
                             {"latency_s", to_seconds(preset.latency)},
                             {"jitter_s", to_seconds(preset.jitter)},
                             {"loss", preset.loss}});
  }
  return section;
}

/// Whole numbers count, others are shares.
std::string cell(const Json& value) {
  if (value.is_number_integer()) {
    return fmt::to_string(value.get<std::uint64_t>());
  }
  if (value.is_number()) {
    return study::percent(value.get<double>());
  }
  return value.is_boolean() ? (value.get<bool>() ? "yes" : "no") : value.get<std::string>();
}

void print(const Section& section, const console::Output& output) {
  output.line(fmt::format("{} ({})", section.key, section.option));
  std::vector<std::vector<std::string>> rows;
  for (const Json& item : section.items) {
    std::vector<std::string> row = {" "};
    for (const std::string& column : section.columns) {
      row.push_back(cell(item.at(column)));
    }
    rows.push_back(std::move(row));
  }
  std::vector<std::string> titles = {" "};
  for (std::string column : section.columns) {
    std::replace(column.begin(), column.end(), '_', ' ');
    titles.push_back(std::move(column));
  }
  output.table(titles, rows);
  output.line("");
}

/// The tensors of a task's model, as compressors by tensor select them.
Section list_tensors(const study::TrainOptions& train) {
  Section section{"tensors", "--compressor \"SPEC; TENSOR=SPEC\"", {"name", "shape", "elements"}};
  const auto task = make_train_plan(train).task_of(0);
  for (const ParameterBlock& tensor : task->layout()) {
    section.items.push_back({{"name", tensor.name},
                             {"shape", fmt::format("{}", fmt::join(tensor.shape, " x "))},
                             {"elements", tensor.size}});
  }
  return section;
}

int run(const ListOptions& options) {
  const console::Output output(options.common);
  if (!options.task.empty() || !options.model.empty()) {
    study::TrainOptions train;
    train.task = options.task.empty() ? train.task : options.task;
    train.model = options.model;
    const Section section = list_tensors(train);
    print(section, output);
    output.json({{"sotto", SOTTO_VERSION}, {section.key, section.items}});
    return console::kDone;
  }
  Json all = {{"sotto", SOTTO_VERSION}};
  std::vector<Section> sections = catalog_sections();
  sections.push_back(list_links());
  for (const Section& section : sections) {
    all[section.key] = section.items;
    print(section, output);
  }
  output.json(all);
  return console::kDone;
}

}  // namespace

console::Command add_list_command(CLI::App& program) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* command = program.add_subcommand("list", "Shows what there is to choose from");
  console::OptionGroup group(*command, "The tensors of one model instead");
  group.option("--task", options->task, "TASK", "Of this task, as in `sotto train`");
  group.option("--model", options->model, "MODEL", "Of this model, else of the task's usual one");
  add_common_options(*command, options->common);
  command->footer(
      "Examples:\n  sotto list\n  sotto list --json -\n"
      "  sotto list --task digits --model mlp:64         names for --compressor \"quant:4; "
      "*.bias=none\"");
  return {command, [options] { return run(*options); }};
}

}  // namespace sotto::cli

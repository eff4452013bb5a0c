// `sotto list`: what this build can do.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/comm/transport.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/optim/robust/aggregation.h>
#include <sotto/sim/link_presets.h>
#include <sotto/topology/registry.h>
#include <sotto/trainers/model.h>
#include <sotto/trainers/task_registry.h>

#include "commands.h"
#include "option_group.h"
#include "output.h"
#include "train/train_options.h"
#include "train/train_plan.h"
#include "units.h"

namespace sotto::cli {
namespace {

struct ListOptions {
  CommonOptions common;
  std::string task;
  std::string model;
};

/// One kind of thing to choose from: the JSON key, the option that takes it, and an object an item.
struct Section {
  const char* key;
  const char* option;
  Json items;
  /// Fields shown to people, in order; the JSON holds all.
  std::vector<std::string> columns;
};

Section list_algorithms() {
  Section section{
      "algorithms", "--algorithm", Json::array(), {"name", "contract", "graph", "summary"}};
  for (const AlgorithmInfo& info : algorithms()) {
    section.items.push_back(
        {{"name", info.name},
         {"title", info.title},
         {"paper", info.paper},
         {"rule", info.rule},
         {"summary", info.summary},
         {"contract", contract_kind_name(info.contract)},
         {"graph", graph_need_name(info.graph)},
         {"time_varying", info.time_varying},
         {"hands_replicas_over", info.replicas},
         {"overlaps", info.overlaps},
         {"delayed_gradient", info.delayable},
         {"consensus_stepsize", info.consensus_stepsize},
         {"extrapolation_clock", info.extrapolation_clock},
         {"step_rule", info.step_rule},
         {"compressor_family", info.family},
         {"most_nodes", info.most_nodes == std::numeric_limits<int>::max() ? Json(nullptr)
                                                                           : Json(info.most_nodes)},
         {"bytes_per_round", info.bytes},
         {"memory_per_parameter", state_formula(info.memory)},
         {"default_compressor", info.default_compressor},
         {"wire_id", info.wire_id}});
  }
  return section;
}

Section list_rules() {
  Section section{
      "rules", "--rule, with --algorithm robust", Json::array(), {"synopsis", "summary"}};
  for (const AggregationInfo& info : aggregations()) {
    section.items.push_back(
        {{"name", info.name}, {"synopsis", info.synopsis}, {"summary", info.summary}});
  }
  return section;
}

Section list_compressors() {
  Section section{
      "compressors", "--compressor", Json::array(), {"synopsis", "contract", "summary"}};
  for (const CompressorInfo& info : compressors()) {
    section.items.push_back({{"name", info.name},
                             {"synopsis", info.synopsis},
                             {"summary", info.summary},
                             {"contract", info.contract},
                             {"example", info.example},
                             {"wire_id", info.wire_id}});
  }
  return section;
}

Section list_topologies() {
  Section section{"topologies", "--topology", Json::array(), {"synopsis", "nodes", "summary"}};
  for (const TopologyInfo& info : topologies()) {
    section.items.push_back({{"name", info.name},
                             {"synopsis", info.synopsis},
                             {"summary", info.summary},
                             {"nodes", info.nodes},
                             {"example", info.example},
                             {"directed", info.directed},
                             {"time_varying", info.time_varying}});
  }
  return section;
}

Section list_transports() {
  Section section{
      "transports", "--transport", Json::array(), {"name", "available", "encrypts", "summary"}};
  for (const TransportInfo& info : transports()) {
    section.items.push_back({{"name", info.name},
                             {"summary", info.summary},
                             {"available", info.available},
                             {"processes", info.processes},
                             {"encrypts", info.encrypts}});
  }
  return section;
}

Section list_tasks() {
  Section section{"tasks", "--task", Json::array(), {"synopsis", "default_model", "summary"}};
  for (const TaskInfo& info : tasks()) {
    section.items.push_back({{"name", info.name},
                             {"synopsis", info.synopsis},
                             {"summary", info.summary},
                             {"default_model", info.default_model}});
  }
  return section;
}

Section list_models() {
  Section section{"models", "--model", Json::array(), {"synopsis", "summary"}};
  for (const ModelInfo& info : models()) {
    section.items.push_back({{"name", info.name},
                             {"synopsis", info.synopsis},
                             {"summary", info.summary},
                             {"example", info.example}});
  }
  return section;
}

Section list_links() {
  Section section{"links",
                  "link presets of scenarios",
                  Json::array(),
                  {"name", "bandwidth", "latency", "jitter", "loss", "summary"}};
  for (const LinkPreset& preset : link_presets()) {
    section.items.push_back({{"name", preset.name},
                             {"summary", preset.summary},
                             {"bandwidth", rate_text(preset.bytes_per_s)},
                             {"latency", duration_text(to_seconds(preset.latency))},
                             {"jitter", duration_text(to_seconds(preset.jitter))},
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
    return percent(value.get<double>());
  }
  return value.is_boolean() ? (value.get<bool>() ? "yes" : "no") : value.get<std::string>();
}

void print(const Section& section, const Output& output) {
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
Section list_tensors(const TrainOptions& train) {
  Section section{"tensors",
                  "--compressor \"SPEC; TENSOR=SPEC\"",
                  Json::array(),
                  {"name", "shape", "elements"}};
  const auto task = make_train_plan(train).task_of(0);
  for (const ParameterBlock& tensor : task->layout()) {
    section.items.push_back({{"name", tensor.name},
                             {"shape", fmt::format("{}", fmt::join(tensor.shape, " x "))},
                             {"elements", tensor.size}});
  }
  return section;
}

int run(const ListOptions& options) {
  const Output output(options.common);
  if (!options.task.empty() || !options.model.empty()) {
    TrainOptions train;
    train.task = options.task.empty() ? train.task : options.task;
    train.model = options.model;
    const Section section = list_tensors(train);
    print(section, output);
    output.json({{"sotto", SOTTO_VERSION}, {section.key, section.items}});
    return kDone;
  }
  Json all = {{"sotto", SOTTO_VERSION}};
  for (const Section& section :
       {list_algorithms(), list_rules(), list_compressors(), list_topologies(), list_transports(),
        list_tasks(), list_models(), list_links()}) {
    all[section.key] = section.items;
    print(section, output);
  }
  output.json(all);
  return kDone;
}

}  // namespace

Command add_list_command(CLI::App& program) {
  auto options = std::make_shared<ListOptions>();
  CLI::App* command = program.add_subcommand("list", "Shows what there is to choose from");
  OptionGroup group(*command, "The tensors of one model instead");
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

// `sotto checkpoint export`: the models in a folder of checkpoints, as files of their own.
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/base/text.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/study/units.h>
#include <sotto/trainers/files/exported_model.h>
#include <sotto/trainers/files/saved_model.h>
#include <sotto/trainers/files/start_file.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "commands.h"
#include "saved_task.h"

namespace sotto::cli {
namespace {

constexpr const char* kCheckpointExportExamples =
    "Examples:\n"
    "  sotto checkpoint export saved --mean model.safetensors\n"
    "  sotto checkpoint export saved --node 3 --own model.csv --round 200\n"
    "  sotto checkpoint export saved --mean model.onnx --task csv:patients.csv\n"
    "  sotto train --nodes 16 --init model.safetensors --checkpoint saved-16\n"
    "What a compressor, a step rule and the clocks remember stays in the checkpoint.";

struct ExportOptions {
  console::CommonOptions common;
  std::string folder;
  std::string mean;
  std::string own;
  TaskPlaces places;
  std::optional<Rank> node;
  std::optional<Round> round;
};

/// Names and shapes as the run's task has them; one tensor where that cannot be made here.
ParameterLayout layout_of(const ExportOptions& o, const SavedModel& saved) {
  try {
    return task_of(o.places, saved).layout;
  } catch (const Error&) {
    // The data may be gone, or the program one with a task of its own.
  }
  return one_tensor(saved.parameters.size());
}

/// An ONNX file: with what the data's columns are.
std::string onnx_of(std::string_view option, const ExportOptions& o, const SavedModel& saved,
                    ModelNotes notes, ParameterLayout& layout) {
  const RunTask task = [&] {
    try {
      return task_of(o.places, saved);
    } catch (const Error& error) {
      throw Error(option,
                  fmt::format("an ONNX file has the scaling and the names of the run's data, which "
                              "cannot be read: {}; name them with --task and --scaling",
                              error.what()));
    }
  }();
  if (!task.data->dataset) {
    throw Error(option, fmt::format("{} has no model that ONNX holds", task.data->spec));
  }
  const Dataset& data = *task.data->dataset;
  ModelNotes facts = notes_on(data);
  facts["what"] = notes.at("model");
  notes["model"] = task.model;
  facts.insert(notes.begin(), notes.end());
  layout = task.layout;
  const auto bytes = encode_onnx_file(layout, saved.parameters, units_of(data), facts);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

SavedModel taken(const Result<SavedModel>& found) {
  if (!found.ok()) {
    throw std::runtime_error(printable(found.status().message()));
  }
  return *found;
}

void check(const ExportOptions& o) {
  if (o.mean.empty() && o.own.empty()) {
    throw Error("mean", "name the file to write, or --node I and --own FILE for one node's model");
  }
  if (o.own.empty() != !o.node) {
    throw Error("own", "one node's model needs both --node I and --own FILE");
  }
  check_writable("mean", o.mean);
  check_writable("own", o.own);
}

int run(const ExportOptions& o) {
  check(o);
  const console::Output output(o.common);
  Json all = {{"sotto", SOTTO_VERSION}, {"folder", printable(o.folder)}};
  const auto write = [&](const std::string& option, const std::string& path,
                         const SavedModel& saved, const std::string& what) {
    const ModelNotes notes = {{"sotto", SOTTO_VERSION},
                              {"model", what},
                              {"round", fmt::to_string(saved.round)},
                              {"nodes", fmt::to_string(saved.nodes)},
                              {"averaged", fmt::to_string(saved.averaged)}};
    ParameterLayout layout;
    if (path.ends_with(kOnnxFile)) {
      write_result_file(option, path, onnx_of(option, o, saved, notes, layout));
    } else {
      layout = layout_of(o, saved);
      write_result_file(option, path, start_file(path, layout, saved.parameters, notes));
    }
    output.line(fmt::format("{}: {} at round {}, {} in {}", path, what, saved.round,
                            study::counted(saved.parameters.size(), "parameter"),
                            study::counted(layout.size(), "tensor")));
    all[option] = {{"file", printable(path)},
                   {"round", saved.round},
                   {"nodes", saved.nodes},
                   {"averaged", saved.averaged},
                   {"parameters", saved.parameters.size()},
                   {"tensors", layout.size()}};
  };
  if (!o.mean.empty()) {
    const SavedModel saved = taken(read_mean_model(o.folder, o.round));
    write("mean", o.mean, saved, fmt::format("the mean of {}", averaged_text(saved, "node")));
  }
  if (o.node) {
    write("own", o.own, taken(read_node_model(o.folder, *o.node, o.round)),
          fmt::format("node {}'s model", *o.node));
  }
  output.json(all);
  return console::kDone;
}

}  // namespace

console::Command add_export_command(CLI::App& checkpoint) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = checkpoint.add_subcommand(
      "export", "Writes the saved models, or one node's, for a new run (--init) or other programs");
  command->add_option("DIR", options->folder, "The folder of checkpoints")
      ->type_name("DIR")
      ->required();
  console::OptionGroup what(*command, "What is written");
  what.option(
      "--mean", options->mean, "FILE",
      "The mean of all nodes' models: tensors by name (.safetensors), a graph that takes the "
      "data's columns (.onnx), or else a row of numbers (.csv)");
  what.option("--own", options->own, "FILE", "The model of --node, in the same formats");
  what.count("--node", options->node, "I", "Whose own model");
  what.count(
      "--round", options->round, "R",
      "Of this round; by default of the newest of which all nodes, or that one, have a whole "
      "checkpoint");
  console::OptionGroup data(*command, "The run's data, for .onnx and names of tensors");
  data.option("--task", options->places.task, "SPEC",
              "Where they are now; by default as in the run");
  data.option("--scaling", options->places.scaling, "FILE.toml",
              "The run's --scaling, where it had one");
  return completed(*command, options, kCheckpointExportExamples, run);
}

}  // namespace sotto::cli

// `sotto checkpoint untie`: a model whose layers share weights, with weights for each layer.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include <sotto/base/durable_file.h>
#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/base/text.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/study/units.h>
#include <sotto/trainers/files/exported_model.h>
#include <sotto/trainers/files/model_file.h>
#include <sotto/trainers/files/saved_model.h>
#include <sotto/trainers/files/start_file.h>
#include <sotto/trainers/tasks/untie.h>

#include "commands.h"
#include "saved_task.h"

namespace sotto::cli {
namespace {

constexpr const char* kCheckpointUntieExamples =
    "Examples:\n"
    "  sotto train --task text:book.txt --model transformer:4,64,4,share=4 --checkpoint tied\n"
    "  sotto checkpoint untie tied untied.safetensors\n"
    "  sotto train --task text:book.txt --model transformer:4,64,4 --init untied.safetensors\n"
    "The untied model computes what the tied one did. What a compressor, a step rule and the "
    "clocks remember stays in the checkpoint.";

struct UntieOptions {
  console::CommonOptions common;
  std::string in;
  std::string out;
  TaskPlaces places;
  std::optional<Round> round;
};

/// A tied model by its tensors.
struct TiedModel {
  ModelTensors tensors;
  std::string model;  ///< its specification; empty: the file does not say it
};

TiedModel read_folder(const UntieOptions& o) {
  const auto saved = read_mean_model(o.in, o.round);
  if (!saved.ok()) {
    throw std::runtime_error(printable(saved.status().message()));
  }
  const RunTask task = [&] {
    try {
      return task_of(o.places, *saved);
    } catch (const Error& error) {
      throw Error(fmt::format(
          "{}: the names of its tensors are those of the run's data, which cannot be read: {}; "
          "name the data with --task",
          o.in, error.what()));
    }
  }();
  return {{task.layout, saved->parameters}, task.model};
}

TiedModel read_tied(const UntieOptions& o) {
  std::error_code code;
  if (!std::filesystem::exists(o.in, code)) {
    throw Error(o.in, "there is no such file or folder");
  }
  if (std::filesystem::is_directory(o.in, code)) {
    return read_folder(o);
  }
  if (!o.in.ends_with(kTensorFile)) {
    throw Error(o.in,
                "layers are told by the names of tensors: name a folder of checkpoints, or a "
                "file that ends in .safetensors");
  }
  if (o.round || !o.places.task.empty() || !o.places.scaling.empty()) {
    throw Error(o.in,
                "a file has one model with its names: --round, --task and --scaling are for "
                "folders of checkpoints");
  }
  const auto bytes = read_file(o.in, kMostStateBytes);
  if (!bytes.ok()) {
    throw std::runtime_error(printable(bytes.status().message()));
  }
  auto tensors = read_model_tensors(*bytes);
  if (!tensors.ok()) {
    throw std::runtime_error(printable(fmt::format("{}: {}", o.in, tensors.status().message())));
  }
  return {std::move(*tensors), {}};
}

int run(const UntieOptions& o) {
  if (o.out.ends_with(kOnnxFile)) {
    refuse("out", o.out, "a file to start from ends in .safetensors or .csv");
  }
  check_writable("out", o.out);
  std::error_code code;
  if (std::filesystem::equivalent(o.in, o.out, code)) {
    refuse("out", o.out, "that is the tied model itself, which would be lost");
  }
  const console::Output output(o.common);
  const TiedModel tied = read_tied(o);
  const UntiedModel untied = [&] {
    try {
      return untie_layers(tied.tensors.layout, tied.tensors.parameters);
    } catch (const Error& error) {
      throw Error(o.in, error.reason());
    }
  }();
  const std::string model = tied.model.substr(0, tied.model.find(",share="));
  ModelNotes notes = {{"sotto", SOTTO_VERSION}, {"untied", fmt::to_string(untied.layers)}};
  if (!model.empty()) {
    notes["model"] = model;
  }
  write_result_file("out", o.out, start_file(o.out, untied.layout, untied.parameters, notes));
  output.line(
      fmt::format("{}: {} layers with weights of their own, of {} before; {} in {}, {} "
                  "before",
                  o.out, untied.layers, study::counted(untied.sets, "set"),
                  study::counted(untied.parameters.size(), "parameter"),
                  study::counted(untied.layout.size(), "tensor"),
                  study::counted(tied.tensors.parameters.size(), "parameter")));
  if (!model.empty()) {
    output.line(fmt::format("go on with --model {} --init {}", model, o.out));
  }
  output.json({{"sotto", SOTTO_VERSION},
               {"file", printable(o.out)},
               {"model", model},
               {"layers", untied.layers},
               {"sets", untied.sets},
               {"parameters", untied.parameters.size()},
               {"tied_parameters", tied.tensors.parameters.size()},
               {"tensors", untied.layout.size()}});
  return console::kDone;
}

}  // namespace

console::Command add_untie_command(CLI::App& checkpoint) {
  auto options = std::make_shared<UntieOptions>();
  CLI::App* command = checkpoint.add_subcommand(
      "untie",
      "Gives each layer of a transformer that shares weights (share=) its own, for --init");
  command->add_option("IN", options->in, "The folder of checkpoints, or a .safetensors file")
      ->type_name("IN")
      ->required();
  command->add_option("OUT", options->out, "The file to write, .safetensors or .csv")
      ->type_name("OUT")
      ->required();
  console::OptionGroup what(*command, "Of a folder");
  what.count("--round", options->round, "R",
             "Of this round; by default of the newest of which all nodes have a whole checkpoint");
  what.option("--task", options->places.task, "SPEC",
              "Where the run's data are now, which tensors are named by; by default as in the run");
  what.option("--scaling", options->places.scaling, "FILE.toml",
              "The run's --scaling, where it had one");
  return completed(*command, options, kCheckpointUntieExamples, run);
}

}  // namespace sotto::cli

// `sotto checkpoint quantize`: a trained model in fewer bits, at a bounded loss.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/base/text.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/study/measure/quantized_model.h>
#include <sotto/study/train/scaling_file.h>
#include <sotto/study/units.h>
#include <sotto/trainers/files/saved_model.h>
#include <sotto/trainers/files/start_file.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "commands.h"
#include "saved_task.h"
#include "terminal/progress.h"
#include "terminal/progress_line.h"

namespace sotto::cli {
namespace {

constexpr const char* kCheckpointQuantizeExamples =
    "Examples:\n"
    "  sotto checkpoint quantize saved small.safetensors\n"
    "  sotto checkpoint quantize model.safetensors small.safetensors --task mnist:data/mnist "
    "--loss-budget 0.01\n"
    "  sotto train --init small.safetensors --task mnist:data/mnist\n"
    "The loss is that of the task's test set. Tensors of fewer than 1,024 numbers stay as they "
    "are.";

struct QuantizeOptions {
  console::CommonOptions common;
  std::string from;
  std::string to;
  std::string task;
  std::string model;
  std::string scaling;
  double loss_budget = 0;
  Round batches = 8;
  std::size_t batch = 256;
};

/// The model, and the task that it is for.
struct Subject {
  std::vector<float> parameters;
  std::shared_ptr<const TaskData> data;
  std::string model;
};

/// The mean of a run's checkpoints, for the run's task.
Subject read_run(const QuantizeOptions& o) {
  if (!o.model.empty()) {
    throw Error("model", "checkpoints say which model they are of");
  }
  auto saved = read_mean_model(o.from, std::nullopt);
  if (!saved.ok()) {
    throw std::runtime_error(printable(saved.status().message()));
  }
  RunTask task = task_of({.task = o.task, .scaling = o.scaling}, *saved);
  return {std::move(saved->parameters), std::move(task.data), std::move(task.model)};
}

Subject read_subject(const QuantizeOptions& o) {
  std::error_code code;
  if (std::filesystem::is_directory(o.from, code)) {
    return read_run(o);
  }
  if (o.task.empty()) {
    throw Error("task", "name the data that the model is for: its loss bounds what is left out");
  }
  std::optional<SharedScaling> scaling;
  if (!o.scaling.empty()) {
    scaling = study::read_scaling("scaling", o.scaling);
  }
  Subject subject{
      .parameters = {}, .data = load_task(o.task, scaling ? &*scaling : nullptr), .model = o.model};
  require_own_gradients(*subject.data, "this measurement");
  const auto task = TaskFactory(subject.data, {.model = o.model, .deal = false}).make(0);
  subject.parameters = read_start(o.from, task->layout()).parameters;
  return subject;
}

void print(const console::Output& output, const QuantizeOptions& o,
           const study::QuantizedModel& model, std::size_t exact) {
  std::vector<std::vector<std::string>> rows;
  for (const study::QuantizedTensor& tensor : model.tensors) {
    rows.push_back({printable(tensor.name), fmt::to_string(tensor.elements),
                    tensor.encoding.empty() ? "as it is" : tensor.encoding,
                    study::amount(static_cast<double>(tensor.bytes)),
                    fmt::format("{:+.2g}", tensor.loss_change)});
  }
  output.table({"tensor", "elements", "encoding", "bytes", "loss, predicted"}, rows);
  output.line("");
  rows.clear();
  for (const study::UniformEncoding& one : model.uniform) {
    rows.push_back({one.encoding, study::amount(static_cast<double>(one.bytes)),
                    fmt::format("{:.4f}", one.loss)});
  }
  output.table({"all tensors alike", "bytes", "test loss"}, rows);
  output.line("");
  output.line(fmt::format("{}: {} in place of {}, {:.2f} times fewer", o.to,
                          study::amount(static_cast<double>(model.bytes())),
                          study::amount(static_cast<double>(exact)),
                          static_cast<double>(exact) / static_cast<double>(model.bytes())));
  output.line(fmt::format(
      "test loss {:.4f} before and {:.4f} after; predicted {:+.4f}, on training data; {} measured",
      model.before.loss, model.after.loss, model.predicted,
      study::counted(static_cast<std::size_t>(model.measured), "choice")));
}

Json quantized_json(const QuantizeOptions& o, const study::QuantizedModel& model,
                    std::size_t exact) {
  Json tensors = Json::array();
  for (const study::QuantizedTensor& tensor : model.tensors) {
    tensors.push_back({{"name", printable(tensor.name)},
                       {"elements", tensor.elements},
                       {"encoding", tensor.encoding.empty() ? "none" : tensor.encoding},
                       {"bytes", tensor.bytes},
                       {"loss_change", tensor.loss_change}});
  }
  Json uniform = Json::array();
  for (const study::UniformEncoding& one : model.uniform) {
    uniform.push_back({{"encoding", one.encoding}, {"bytes", one.bytes}, {"loss", one.loss}});
  }
  return {{"sotto", SOTTO_VERSION},
          {"file", printable(o.to)},
          {"loss_budget", o.loss_budget},
          {"bytes", model.bytes()},
          {"exact_bytes", exact},
          {"loss_before", model.before.loss},
          {"loss_after", model.after.loss},
          {"loss_predicted", model.before.loss + model.predicted},
          {"measured", model.measured},
          {"tensors", tensors},
          {"uniform", uniform}};
}

int run(const QuantizeOptions& o) {
  if (!o.to.ends_with(kTensorFile)) {
    refuse("out", o.to, fmt::format("encoded tensors stand in a file named {}", kTensorFile));
  }
  check_writable("out", o.to);
  std::error_code code;
  if (std::filesystem::equivalent(o.from, o.to, code)) {
    refuse("out", o.to, "that is the model itself, which would be lost");
  }
  const Subject subject = read_subject(o);
  const TaskFactory factory(subject.data, {.model = subject.model, .batch = o.batch});
  const auto task = factory.make(0);
  console::catch_stop_signals();
  const console::Output output(o.common);
  ProgressLine line(bar_alone(o.common.quiet).bar);
  const study::QuantizedModel model = study::quantize_model(
      *task, subject.parameters, {.loss_budget = o.loss_budget, .batches = o.batches, .stop = [] {
                                    return console::stop_requested().load();
                                  }});
  line.clear();
  if (model.stopped) {
    output.line("stopped: nothing is written");
    return console::kFailed;
  }
  const std::size_t exact = subject.parameters.size() * sizeof(float);
  const auto bytes = encode_model_file(task->layout(), subject.parameters,
                                       {{"sotto", SOTTO_VERSION},
                                        {"model", factory.options().model},
                                        {"what", "a model in fewer bits"}},
                                       model.encodings());
  write_result_file("out", o.to, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  print(output, o, model, exact);
  output.json(quantized_json(o, model, exact));
  return console::kDone;
}

}  // namespace

console::Command add_quantize_command(CLI::App& checkpoint) {
  auto options = std::make_shared<QuantizeOptions>();
  CLI::App* command = checkpoint.add_subcommand(
      "quantize", "Writes a model in as few bits a tensor as a bound on its loss allows");
  command
      ->add_option("IN", options->from,
                   "The model: a file that --init takes, or a folder of "
                   "checkpoints, whose models' mean is taken")
      ->type_name("IN")
      ->required();
  command->add_option("OUT", options->to, "The file to write, which --init takes")
      ->type_name("OUT.safetensors")
      ->required();
  console::OptionGroup what(*command, "How much may be left out");
  what.option("--loss-budget", options->loss_budget, "LOSS",
              "How much the loss on the test set may rise");
  what.count("--batches", options->batches, "K",
             "Batches of training data whose gradients predict that");
  what.count("--batch", options->batch, "B", "Examples of a batch");
  console::OptionGroup data(*command, "What the model is for");
  data.option("--task", options->task, "SPEC", "The data; of checkpoints by default their run's");
  data.option("--model", options->model, "SPEC", "The model, likewise; else the task's default");
  data.option("--scaling", options->scaling, "FILE.toml", "The run's --scaling, where it had one");
  return completed(*command, options, kCheckpointQuantizeExamples, run);
}

}  // namespace sotto::cli

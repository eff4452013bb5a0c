#include "train_options.h"

#include "option_group.h"

namespace sotto::cli {
namespace {

void add_task_options(CLI::App& command, TrainOptions& o) {
  OptionGroup group(command, "What is trained");
  group.option("--task", o.task, "SPEC", "digits, or data of your own; see `sotto list`");
  group.option("--model", o.model, "SPEC",
               "softmax, mlp:H1,H2,…, cnn, transformer; by default what fits the task");
  group.count("--batch", o.batch, "N", "Examples a round and node; by default 32");
  group.option("--partition", o.partition, "SPEC", "iid, dirichlet:ALPHA, label or sizes:BETA");
  group.option("--gradient-time", o.gradient_time, "SPEC",
               "How long a gradient takes at least, as on a slower machine: \"20 ms\", "
               "\"lognormal:20 ms,0.3\", \"uniform:15 ms,25 ms\" or \"exponential:20 ms\"");
  group.option(
      "--init", o.init, "FILE",
      "Start from this model: tensors by name (.safetensors), else the first row of a file "
      "of parameters (.csv), or a folder of checkpoints, of any number of nodes, whose "
      "newest mean it is");
}

/// What is for a program that runs all nodes itself.
void add_place_options(CLI::App& command, TrainOptions& o) {
  OptionGroup group(command, "Who takes part");
  group.flag("--local", o.local,
             "Run all nodes here, whatever a launcher's variables (RANK, …) say");
  command.get_option("--nodes")->description(
      "Number of nodes; 8, or what the data or the graph says by itself");
}

void add_length_options(CLI::App& command, TrainOptions& o) {
  OptionGroup group(command, "Length and results");
  auto& epochs = group.option("--epochs", o.epochs, "E",
                              "Passes over the data; by default 5, and 100 rounds at least");
  group.count("--rounds", o.rounds, "R", "Rounds, instead of epochs").excludes(&epochs);
  group.count("--eval-every", o.eval_every, "R",
              "Rounds between evaluations; by default an epoch, or more so that there are 100 at "
              "most; 0: only at the end");
  group.option("--dump-parameters", o.dump_parameters, "FILE.csv",
               "Write the final models, a row of numbers for each node");
  group.option("--checkpoint", o.checkpoint, "DIR", "Save the state of all nodes in this folder");
  group.count("--checkpoint-every", o.checkpoint_every, "R",
              "Rounds between checkpoints; by default as --eval-every");
  group.flag("--resume", o.resume, "Go on from the newest checkpoint that all nodes have");
}

}  // namespace

void add_train_options(CLI::App& command, TrainOptions& options) {
  add_task_options(command, options);
  for (const SettingGroup& settings : settings_of(options)) {
    OptionGroup group(command, std::string(settings.title));
    for (const Setting& setting : settings.settings) {
      group.add(setting);
    }
  }
  add_place_options(command, options);
  add_length_options(command, options);
  add_common_options(command, options.common);
}

}  // namespace sotto::cli

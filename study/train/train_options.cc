#include <sotto/study/train/train_options.h>

#include <limits>
#include <utility>

namespace sotto::study {
namespace {

SettingGroup task_settings(TrainOptions& o) {
  return {
      "What is trained",
      {
          {"task", &o.task, "SPEC", "digits, or data of your own; see `sotto list`"},
          {"model", &o.model, "SPEC",
           "softmax, mlp:H1,H2,…, cnn, transformer; by default what fits the task"},
          {"batch", &o.batch, "N", "Examples a round and node; by default 32"},
          {"batch-share", &o.batch_share, "speed|V,V",
           "Share out a round's examples, N times the nodes, by how fast these are: as each of a "
           "launched job measures before the run, or in proportion to the numbers given; gradients "
           "count by their examples"},
          {"partition", &o.partition, "SPEC", "iid, dirichlet:ALPHA, label, sizes:BETA or blocks"},
          {"gradient-time", &o.gradient_time, "SPEC",
           "How long a gradient takes at least, as on a slower machine: \"20 ms\", "
           "\"lognormal:20 ms,0.3\", \"uniform:15 ms,25 ms\" or \"exponential:20 ms\""},
          {"experts-at", &o.experts_at, "everywhere|nodes",
           "Where a model's experts lie: all of them at each node, as the rest of the model, or "
           "some at each, to which the others send rows within a step; by default everywhere"},
          {"expert-compressor", &o.expert_compressor, "SPEC",
           "Compressor of the rows that go to experts, and of their gradients: unbiased, 8 bits or "
           "more, or none; by default quant:8"},
          {"expert-capacity", &o.expert_capacity, "F",
           "Drop rows of a node for an expert beyond F times an even share; by default none is "
           "dropped"},
          {"init", &o.init, "FILE",
           "Start from this model: tensors by name (.safetensors), else the first row of a "
           "file of parameters (.csv), or a folder of checkpoints, of any number of nodes, "
           "whose newest mean it is"},
          {"scaling", &o.scaling, "FILE.toml",
           "Scale a table's columns by these means and deviations, which `sotto data scaling` "
           "makes for several sites, not by those of the training rows"},
          {"own-sums", &o.own_sums, "FILE.toml",
           "The sums of this node's data in that scaling, whose noise counts as privacy spent; by "
           "default the least noise of all in it counts"},
      }};
}

/// What is for a program that runs all nodes itself.
SettingGroup place_settings(TrainOptions& o) {
  return {"Who takes part",
          {
              {"local", &o.local, "",
               "Run all nodes here, whatever a launcher's variables (RANK, …) say"},
          }};
}

SettingGroup length_settings(TrainOptions& o) {
  return {
      "Length and results",
      {
          {"epochs", &o.epochs, "E", "Passes over the data; by default 5, and 100 rounds at least"},
          {"rounds", &o.rounds, "R", "Rounds, instead of epochs"},
          {"eval-every", &o.eval_every, "R",
           "Rounds between evaluations; by default an epoch, or more so that there are 100 at "
           "most; 0: only at the end"},
          {"dump-parameters", &o.dump_parameters, "FILE.csv",
           "Write the final models, a row of numbers for each node"},
          {"checkpoint", &o.checkpoint, "DIR", "Save the state of all nodes in this folder"},
          {"checkpoint-every", &o.checkpoint_every, "R",
           "Rounds between checkpoints; by default as eval-every"},
          {"resume", &o.resume, "", "Go on from the newest checkpoint that all nodes have"},
      }};
}

SettingGroup seed_settings(TrainOptions& o) {
  return {"Options",
          {{"seed", &o.seed, "S", "Seed of everything random",
            std::numeric_limits<std::uint64_t>::max()}}};
}

}  // namespace

std::vector<SettingGroup> train_settings(TrainOptions& options) {
  std::vector<SettingGroup> groups = {task_settings(options)};
  for (SettingGroup& group : settings_of(options)) {
    groups.push_back(std::move(group));
  }
  groups.push_back(place_settings(options));
  groups.push_back(length_settings(options));
  groups.push_back(seed_settings(options));
  return groups;
}

}  // namespace sotto::study

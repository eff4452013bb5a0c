// What is started on which host so that a contender runs, and whether it can be here. One thread at
// a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contender.h"
#include "contender_job.h"
#include "testbed.h"

namespace sotto::netlab {

/// Paths of what is run.
struct Runners {
  std::string sotto;
  std::string python = "/usr/bin/python3";

  /// Why a contender's program cannot run here, with the package that it needs; nothing when it
  /// can. Looks once for each program.
  std::optional<std::string> missing(Runner runner) const;
};

/// Settings of a training that all have that train.
struct TrainingSettings {
  std::string mnist = {};  ///< the folder of MNIST's IDX files; empty: `task` is trained on
  std::string task = {};   ///< as of `sotto train`; empty: MNIST
  std::string model = {};  ///< as of `sotto train`; empty: the perceptron of the job
  int batch = 32;          ///< examples of a node in a step
  double lr = 0.3;
  std::string step_rule = "sgd";  ///< as of `sotto train`
  std::uint64_t eval_every = 10;

  /// The task as `sotto train` takes it.
  std::string task_spec() const { return task.empty() ? "mnist:" + mnist : task; }
  /// The model as `sotto train` takes it, where the perceptron has so many hidden units.
  std::string model_spec(int hidden) const;
  /// Why a runner's program cannot train so; nothing where it can.
  std::optional<std::string> unknown_to(Runner runner) const;
};

/// A job: the model is `mlp:hidden` on images of 28 × 28, unless the training says another, and
/// peers that do not train average as many values.
struct JobRequest {
  int hidden = 0;          ///< the width of the hidden layer
  int rounds = 0;          ///< rounds that are timed, or trained
  std::uint64_t seed = 0;  ///< the seed of models and batches
  double timeout_s = 60;   ///< the longest that any wait of the programs may take
  std::optional<TrainingSettings>
      training;  ///< the training; without one only communication is measured
};

/// Parameters of `mlp:hidden`.
std::size_t elements_of(int hidden);
/// The smallest such model that has `elements` or more.
int hidden_for(std::size_t elements);

/// `folder` is empty, and the job's to meet in.
std::vector<Process> processes_of(const Contender& contender, const JobRequest& request,
                                  const Testbed& testbed, const Runners& runners,
                                  const std::string& folder);

}  // namespace sotto::netlab

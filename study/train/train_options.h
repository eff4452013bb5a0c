// The settings of a training run by name, as `sotto train`, scenarios and comparisons take them.
// Plain values; unset where the default depends on others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/trainers/settings/optimizer_settings.h>

namespace sotto::study {

/// The number of nodes of a run or a graph that says nothing of it.
inline constexpr int kDefaultNodes = 8;

/// The settings of an optimizer, and those that a whole run has beside them.
struct TrainOptions : OptimizerSettings {
  std::uint64_t seed = 0;  ///< seed of everything random

  std::string task = "digits";
  std::string model;
  std::string partition = "iid";
  std::optional<std::size_t> batch;
  std::string
      batch_share;  ///< how nodes share out a step's examples (batch_share.h); empty: evenly
  std::string gradient_time;
  /// Where experts of the model lie: `everywhere` or `nodes` (trainers/tasks/experts_at_nodes.h);
  /// empty: everywhere.
  std::string experts_at;
  std::string expert_compressor;
  std::optional<double> expert_capacity;

  std::optional<double> epochs;
  std::optional<Round> rounds;
  std::optional<Round> eval_every;
  std::string init;
  std::string scaling;  ///< file of means and deviations (study/train/scaling_file.h); empty: none
  /// File of the sums of this node's data that went into `scaling`; empty: not known.
  std::string own_sums;
  std::string dump_parameters;
  std::string checkpoint;
  std::optional<Round> checkpoint_every;
  bool resume = false;

  bool local = false;
  bool simulated = false;  ///< the run is simulated: noise that hides data comes from `seed`
  /// False: no data are dealt, as no node takes a gradient (scenarios of timing only).
  bool deal = true;
};

/// Lists all settings under the titles of a help, `seed` in a group of its own at the end. They
/// point into `options`, which must outlive them.
std::vector<SettingGroup> train_settings(TrainOptions& options);

}  // namespace sotto::study

// The settings of `sotto train`, as given. Plain values; unset where the default depends on others.
#pragma once

#include <optional>
#include <string>

#include <CLI/App.hpp>

#include <sotto/base/ids.h>

#include "commands.h"

namespace sotto::cli {

// In the order of the help, not of their sizes.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct TrainOptions {
  CommonOptions common;

  std::string task = "digits";
  std::string model;
  std::string partition = "iid";
  std::optional<std::size_t> batch;
  std::string gradient_time;

  std::optional<int> nodes;
  std::string transport;
  std::string topology = "ring";
  std::string weighting;
  bool lazy = false;

  std::string algorithm = "dcd";
  std::string compressor;
  std::optional<double> consensus_stepsize;
  std::optional<Round> extrapolation_clock;
  std::string freeze_step = "auto";
  std::optional<Round> local_step_limit;
  std::string rule;
  std::string byzantine;
  std::string attack;
  bool allow_contract_violation = false;
  bool delayed_gradient = false;

  std::string step_rule;
  std::optional<double> lr;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  std::optional<double> beta1;
  std::optional<double> beta2;
  std::optional<double> epsilon;
  std::optional<double> trust_coefficient;
  std::string bias_correction = "always";
  std::optional<double> clip_norm;
  std::string schedule = "constant";

  std::optional<double> noise_multiplier;
  std::optional<double> privacy_epsilon;
  std::optional<double> privacy_delta;
  std::string privacy_unit;
  std::optional<std::uint64_t> privacy_seed;

  Round communication_interval = 1;
  std::string outer_step_rule;
  std::optional<double> outer_lr;
  double outer_momentum = 0;
  bool outer_nesterov = false;

  std::optional<double> epochs;
  std::optional<Round> rounds;
  std::optional<Round> eval_every;
  std::string init;
  std::string dump_parameters;
  std::string checkpoint;
  std::optional<Round> checkpoint_every;
  bool resume = false;

  std::string overlap = "on";
  int codec_threads = 1;
  std::optional<std::uint32_t> buckets;
  double timeout_s = 60;
  std::string rendezvous;
  std::string bind = "127.0.0.1";
  bool insecure = false;
  std::string key;
  std::string peers;
  bool local = false;
  bool simulated = false;  ///< of scenarios: noise that hides data is the seed's
  bool deal = true;        ///< false, of scenarios of timing only: no node takes a gradient
};

/// `options` must live as long as the command.
void add_train_options(CLI::App& command, TrainOptions& options);

}  // namespace sotto::cli

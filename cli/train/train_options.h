// The settings of `sotto train`, as given. Plain values; unset where the default depends on others.
#pragma once

#include <optional>
#include <string>

#include <CLI/App.hpp>

#include <sotto/base/ids.h>
#include <sotto/trainers/optimizer_settings.h>

#include "commands.h"

namespace sotto::cli {

/// What an optimizer takes, and what a program needs beside it.
struct TrainOptions : OptimizerSettings {
  CommonOptions common;

  std::string task = "digits";
  std::string model;
  std::string partition = "iid";
  std::optional<std::size_t> batch;
  std::string gradient_time;

  std::optional<double> epochs;
  std::optional<Round> rounds;
  std::optional<Round> eval_every;
  std::string init;
  std::string dump_parameters;
  std::string checkpoint;
  std::optional<Round> checkpoint_every;
  bool resume = false;

  bool local = false;
  bool simulated = false;  ///< of scenarios: noise that hides data is the seed's
  bool deal = true;        ///< false, of scenarios of timing only: no node takes a gradient
};

/// `options` must live as long as the command.
void add_train_options(CLI::App& command, TrainOptions& options);

}  // namespace sotto::cli

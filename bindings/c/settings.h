// Settings as C hands them over: pairs of texts. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sotto/observe/telemetry.h>
#include <sotto/trainers/settings/optimizer_settings.h>

namespace sotto::c {

/// What a node is told beside the settings that all programs share.
struct NodeSettings {
  OptimizerSettings shared;
  std::optional<int> rank;
  std::uint64_t seed = 0;
  Round rounds = 0;
  std::optional<double> sampling_rate;
  std::optional<double> privacy_batch;
  std::string privacy_ledger;
  TelemetryOptions telemetry;
  Round report_every = OptimizerOptions().report_every;
  AgreedSettings job;
  std::vector<std::string> given;  ///< names, with dashes
};

/// All of them by name, to be listed; those that are for tests of `sotto train` alone left out.
std::vector<SettingGroup> groups_of(NodeSettings& settings);

/// Reads names and values in turn up to a null pointer. Throws Error for a name that is none, given
/// twice or without value, and for a value that cannot be read.
NodeSettings read_settings(const char* const* settings);

/// The options that the settings stand for, except for the observer. Throws Error.
OptimizerOptions node_options(const NodeSettings& settings, std::shared_ptr<Store> store);

/// The telemetry that the settings ask for; null for none. Throws Error.
std::unique_ptr<Telemetry> make_telemetry(const NodeSettings& settings,
                                          const OptimizerOptions& options,
                                          std::function<void(const std::string&)> warn);

}  // namespace sotto::c

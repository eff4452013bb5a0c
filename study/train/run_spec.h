// A run in few words: "dcd quant:8 torus:2x4 lr=0.05". Plain values and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sotto/study/train/train_options.h>

namespace sotto::study {

/// One setting of a run, "weight-decay" and its value.
struct RunSetting {
  std::string name;
  std::string value;

  /// Whether it says how long the run is.
  bool is_length() const { return name == "rounds" || name == "epochs"; }
  bool operator==(const RunSetting&) const = default;
};

/// The words that give these settings: "dcd quant:8 ring lr=0.05".
std::string words_of(const std::vector<RunSetting>& settings);

/// A run of a scenario or a comparison: the settings in which it differs from the others.
struct RunSpec {
  std::string name;                  ///< the run as it was written
  std::vector<RunSetting> settings;  ///< the run's settings, the algorithm first
  std::string label = {};            ///< name in tables and results; empty: `name`

  const std::string& shown() const { return label.empty() ? name : label; }

  /// The value that the run itself has for a setting; null where it has none.
  const std::string* find(std::string_view setting) const;
  std::string_view algorithm() const { return settings.front().value; }
  /// This run with one setting more, which its name says too.
  RunSpec with(std::string_view setting, std::string_view value) const;
};

/// Makes a run of its parts; an empty compressor or topology is left to defaults.
RunSpec run_of(std::string_view algorithm, std::string_view compressor = {},
               std::string_view topology = {});

/// Reads a run: first the algorithm, then in any order a compressor, a topology, and settings of
/// `sotto train` as NAME=VALUE. Throws Error naming the word that is wrong; values of settings are
/// read by with_run.
RunSpec parse_run(std::string_view words);

/// The shared options with what the run sets; a length that it sets replaces the shared one. Throws
/// Error for a value that is none.
TrainOptions with_run(const TrainOptions& shared, const RunSpec& run);

/// The run's settings, behind those of `shared` that it leaves as they are. Throws Error as
/// with_run does.
std::vector<RunSetting> joined_settings(const RunSpec& run, const std::vector<RunSetting>& shared);

}  // namespace sotto::study

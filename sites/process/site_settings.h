// The settings of a site by name, as programs in other languages give them; what comes of them is
// SiteOptions. Names are the keys of a site's file (docs/operations.md).
//
//   SiteSettings settings;
//   set(settings_of(settings), "algorithm", "choco");
//   SiteOptions options = options_of(settings);
//
// Plain values and pure functions, except options_of, which reads key and list; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/setting.h>
#include <sotto/sites/nodes/report/site_output_options.h>
#include <sotto/sites/nodes/roster_settings.h>
#include <sotto/sites/process/site_options.h>
#include <sotto/sites/process/trust/site_identity.h>
#include <sotto/trainers/settings/optimizer_settings.h>

namespace sotto {

/// What SiteSettings::state is before anybody says what it is to be; no folder can be called so.
inline constexpr std::string_view kNoStateGiven{"\0", 1};

/// The values of the settings, given or default.
struct SiteSettings {
  SiteNames names;
  /// Where `nodes` or `seeds` is given the site is a node of a run whose nodes come and go: `key`
  /// is the run's, or empty, there is no list of peers, and it keeps no state. Only these of them.
  RosterSettings roster{};
  /// Folder; empty: it keeps no state, which is to be said.
  std::string state{kNoStateGiven};
  std::string source;  ///< addresses to dial from, with spaces between them; empty: any
  std::uint64_t seed = 0;
  Round rounds = 0;  ///< number of rounds; 0: the site goes on
  /// Algorithm and compressor, step rule and communication interval; others are not used.
  OptimizerSettings training = [] {
    OptimizerSettings settings;
    settings.algorithm = "pushsum";
    return settings;
  }();

  std::string step_weighting = "work";
  std::string own_steps;  ///< H_i, steps of a round, or "auto"; empty: H

  double timeout_s = 10;
  double patience_s = 30;
  double found_after_s = 30;
  Round slack = 0;
  Round save_every = 1;         ///< rounds between writes; 1: before anything is told
  std::optional<Round> window;  ///< parcels under way to a peer; unset: as the exchange needs
  bool observer = false;
  bool secure_sum = false;
  Round secure_colluders = sites::SecureSumRule().colluders;
  double secure_range = sites::SecureSumRule().range;
  double mass_return = sites::MassRule().back;
  double parcel_mass = sites::MassRule().parcel;
  double pull_most = sites::PullLimits().most;
  double pull_memory = sites::PullLimits().memory;
  std::optional<Round> pull_fresh;  ///< rounds; unset: as the exchange needs
  SiteOutputOptions outputs{};      ///< for SiteOutputs; a site's options do not have them
};

/// The settings of [training] in a site's file that are not about data; they point into `settings`.
SettingGroup shared_settings_of(SiteSettings& settings);

/// Lists all settings; they point into `settings`, which must outlive them.
std::vector<SettingGroup> settings_of(SiteSettings& settings);

/// Sets what sites must share; whether the other settings fit is not looked at. Throws Error for a
/// setting that is refused.
void take_shared_settings(const SiteSettings& settings, SiteOptions& options);

/// Sets all of `options` that is not about who the site is and where it listens. Throws Error for a
/// setting that is refused.
void take_settings(const SiteSettings& settings, SiteOptions& options);

/// Reads the key, and the list of peers if there is one. The initial model is what SiteOptimizer is
/// given. Throws Error for a setting that is missing or refused.
SiteOptions options_of(const SiteSettings& settings);
/// The folder of the state that SiteOptimizer is given; empty: none.
std::string state_of(const SiteSettings& settings);

}  // namespace sotto

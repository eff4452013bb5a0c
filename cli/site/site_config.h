// The file in which a site is described, `sotto node SITE.toml`. The format is TOML;
// docs/operations.md has it whole. Paths in it are relative to the file. Plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/observe/monitor_address.h>
#include <sotto/sites/core/mass_rule.h>
#include <sotto/sites/core/pull_bound.h>
#include <sotto/sites/core/secure_sum_rule.h>
#include <sotto/study/train/train_options.h>

#include "site_places.h"

namespace sotto::cli {

/// This site's share of data that are split among sites, as in a demonstration.
struct DataPart {
  int number = 1;  ///< from 1
  int of = 1;
};

struct SiteConfig {
  std::string file;  ///< this one
  std::string name;
  std::string key;    ///< file
  std::string peers;  ///< file
  /// HOST:PORT, or several with spaces between them; empty: as the own line of the peers' file says
  std::string listen;
  std::string source;  ///< addresses to dial from, with spaces between them; empty: any
  std::string state;   ///< folder
  std::string audit;   ///< file (audit_log.h); empty: none
  std::optional<MonitorAddress> monitor;

  study::TrainOptions training;
  DataPart part;
  std::string export_file;  ///< for other programs; empty: nowhere
  SitePlaces places;        ///< of settings, for messages

  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds patience{30'000};
  std::chrono::milliseconds found_after{30'000};
  Round slack = 0;
  Round save_every = 1;
  std::size_t window = 2;
  bool observer = false;
  sites::MassRule mass{};
  sites::PullLimits pull{};
  bool secure_sum = false;
  sites::SecureSumRule sum{};
};

/// Reads the file alone, none of those that it names. Throws Error naming file, line and key.
SiteConfig read_site_config(const std::string& path);

}  // namespace sotto::cli

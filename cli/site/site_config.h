// The file in which a site is described, `sotto node SITE.toml`. The format is TOML;
// docs/operations.md has it whole. Paths in it are relative to the file. Plain values.
#pragma once

#include <optional>
#include <string>

#include <sotto/observe/monitor_address.h>
#include <sotto/sites/process/site_settings.h>
#include <sotto/study/train/train_options.h>

#include "site_places.h"

namespace sotto::cli {

/// This site's share of data that are split among sites, as in a demonstration.
struct DataPart {
  int number = 1;  ///< from 1
  int of = 1;
};

struct SiteConfig {
  std::string file;   ///< path of the site's file
  SiteSettings site;  ///< its identity, and how it exchanges and steps
  std::optional<MonitorAddress> monitor;

  /// [training], of which `site` has what sites share. Without a task a program of its own trains
  /// at the site (docs/own_models.md), and `sotto node` cannot.
  study::TrainOptions training;
  DataPart part;
  std::string export_file;  ///< the model for other programs; empty: none
  SitePlaces places;        ///< of settings, for messages
};

/// Reads the file alone, none of those that it names. Throws Error naming file, line and key.
SiteConfig read_site_config(const std::string& path);

}  // namespace sotto::cli

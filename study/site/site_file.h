// A site's file (docs/operations.md) as settings for a program that trains a model of its own:
// its identity, how it exchanges and steps, and how it bears with others. What says which data
// `sotto node` trains on, and what it writes, is left to the program. Reads the file alone, none of
// those that it names; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include <sotto/sites/process/site_settings.h>

namespace sotto::study {

class TomlReader;

/// Reads what a site's file says of the site itself: version, identity and [network]. The caller
/// reads what else there is, [training] among it, and calls finish(). Throws Error naming file,
/// line and key.
SiteSettings read_site(TomlReader& in);

/// Reads the file; paths in it are relative to it. Throws Error naming file, line and key.
SiteSettings read_site_file(const std::string& path);

/// Whether a site's [training] has this setting of `sotto train`, as "weight-decay".
bool is_training_setting(std::string_view name);

}  // namespace sotto::study

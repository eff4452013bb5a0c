// What the files of a site must be before it runs: which it may write, and which other users of the
// host may change. The functions read files, and change nothing; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "site_config.h"

namespace sotto::cli {

/// Throws Error where `path`, the value of `option`, cannot be written, or is a file that the site
/// itself needs.
void check_result_file(const SiteConfig& config, std::string_view option, const std::string& path);
/// Checks all files that the site's file names for results, likewise.
void check_result_files(const SiteConfig& config);

/// Throws Error where everybody on this host can change the site's file, which says what it does,
/// or its list, which says whom it trusts; appends a warning where a group can.
void check_guarded(const SiteConfig& config, std::vector<std::string>& warnings);

}  // namespace sotto::cli

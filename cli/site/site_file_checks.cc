#include "site_file_checks.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>

namespace sotto::cli {
namespace {

/// The file itself where there is one, and where it would be.
std::filesystem::path place_of(const std::string& path) {
  std::error_code error;
  auto place = std::filesystem::weakly_canonical(path, error);
  return error ? std::filesystem::path(path).lexically_normal() : place;
}

}  // namespace

void check_result_file(const SiteConfig& config, std::string_view option, const std::string& path) {
  if (path.empty() || path == "-") {
    return;
  }
  const auto place = place_of(path);
  for (const auto& [what, own] : {std::pair{"site's file", &config.file},
                                  {"key", &config.site.names.key},
                                  {"list of peers", &config.site.names.peers},
                                  {"audit file", &config.site.outputs.audit},
                                  {"scaling", &config.training.scaling},
                                  {"file of sums", &config.training.own_sums}}) {
    if (!own->empty() && place == place_of(*own)) {
      refuse(option, path, fmt::format("that is this site's {}, which would be lost", what));
    }
  }
  const auto inside = place.lexically_relative(place_of(config.site.state));
  if (!inside.empty() && *inside.begin() != "..") {
    refuse(option, path, "it lies in the folder of this site's state, which would be damaged");
  }
  check_writable(option, path);
}

void check_result_files(const SiteConfig& config) {
  const std::string& dump = config.training.dump_parameters;
  check_result_file(config, "dump_parameters", dump);
  check_result_file(config, "export", config.export_file);
  if (!dump.empty() && dump != "-" && place_of(dump) == place_of(config.export_file)) {
    refuse("export", config.export_file, "it is dump-parameters' file too; give each its own");
  }
}

void check_guarded(const SiteConfig& config, std::vector<std::string>& warnings) {
  using std::filesystem::perms;
  for (const std::string& path : {config.file, config.site.names.peers}) {
    std::error_code code;
    const perms mode = std::filesystem::status(path, code).permissions();
    if ((mode & perms::others_write) != perms::none) {
      throw Error(fmt::format(
          "{}: everybody on this host can change it; take that away with `chmod o-w {}`", path,
          path));
    }
    if ((mode & perms::group_write) != perms::none) {
      warnings.push_back(fmt::format(
          "{}: all of its group can change it; `chmod g-w {}` takes that away", path, path));
    }
  }
}

}  // namespace sotto::cli

// The folder of a federation, which `sotto site init` makes and adds to: a folder for each site,
// and overview.csv. One thread at a time.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/sites/process/trust/peers_lists.h>
#include <sotto/sites/process/trust/trust_plan.h>

namespace sotto::cli {

/// What a federation's folder holds of one site.
struct PresentSite {
  PresentList list;                   ///< its peers.csv
  std::optional<int> monitor_port{};  ///< as its site.toml says
  bool has_secret = false;            ///< its secret key lies in its folder
};

/// The name of a grown list, beside the one that it is to replace.
inline constexpr std::string_view kGrownList = "peers.csv.new";

/// The sites of the plan that the folder `place` has already; none where there is no such folder.
/// Throws Error where the folder holds something else, or a site that the plan lacks.
std::vector<std::optional<PresentSite>> read_federation(const std::string& place,
                                                        const TrustPlan& plan,
                                                        const std::string& plan_path);

/// Files and folders made beside their places, to which they come all together or not at all. What
/// lies at a place stays there, but for overview.csv.
class StagedFolder {
 public:
  /// Throws Error where nothing can be made at `place`, a folder that is there or not.
  explicit StagedFolder(const std::string& place);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  /// Makes a folder NAME for this user alone; where it is for now.
  std::filesystem::path add_folder(const std::string& name);
  /// Adds a file in a folder that is at its place already.
  void add_file(const std::filesystem::path& relative, std::string_view text);
  /// Adds overview.csv, or the next one in place of one that is there.
  void set_overview(std::string_view text);
  /// Puts all at their places. Throws Error, and takes back what it has put, where one is taken.
  void put_in_place();

 private:
  /// (where it is, where it belongs below the place)
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> staged_;
  std::filesystem::path place_;
  std::string made_;
  bool grows_ = false;
};

/// Writes a new file. Throws std::runtime_error where it is there or cannot be written.
void write_new_file(const std::filesystem::path& path, std::string_view text);

}  // namespace sotto::cli

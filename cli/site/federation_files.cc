#include "federation_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/file_descriptor.h>
#include <sotto/base/input_file.h>
#include <sotto/base/text.h>
#include <sotto/base/write_all.h>
#include <sotto/observe/monitor_address.h>
#include <sotto/study/toml/reader.h>

namespace sotto::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostPresentBytes = 1U << 20U;
constexpr const char* kOverview = "overview.csv";

std::optional<int> monitor_port_of(const fs::path& file) {
  std::error_code code;
  if (!fs::exists(file, code)) {
    return std::nullopt;
  }
  const toml::table table = study::read_toml("site.toml", file.string());
  study::TomlReader in(file.string(), "", table);
  const auto monitor = in.parsed("monitor", parse_monitor_address);
  return monitor ? std::optional(monitor->port) : std::nullopt;
}

PresentSite read_present(const fs::path& folder, const std::string& name) {
  PresentSite site;
  site.list.path = (folder / "peers.csv").string();
  const auto text = read_input(site.list.path, kMostPresentBytes);
  if (!text.ok()) {
    refuse("out", site.list.path, text.status().message());
  }
  site.list.text = *text;
  site.monitor_port = monitor_port_of(folder / "site.toml");
  std::error_code code;
  site.has_secret = fs::exists(folder / (name + ".key"), code);
  return site;
}

/// Refuses lists that are still to be put in place: the next ones begin with them.
void require_settled(const fs::path& place, const TrustPlan& plan) {
  for (const PlannedSite& site : plan.sites) {
    const fs::path next = place / site.name / kGrownList;
    std::error_code code;
    if (fs::exists(fs::symlink_status(next, code))) {
      refuse("out", next.string(),
             "it is there from an earlier addition; put it in the place of peers.csv first, so "
             "that the next list begins with it");
    }
  }
}

/// Moves `from` to `to`, where nothing may be.
bool move_to_free_place(const fs::path& from, const fs::path& to) {
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0;
}

}  // namespace

std::vector<std::optional<PresentSite>> read_federation(const std::string& place,
                                                        const TrustPlan& plan,
                                                        const std::string& plan_path) {
  std::vector<std::optional<PresentSite>> present(plan.sites.size());
  std::error_code code;
  if (!fs::exists(fs::symlink_status(place, code))) {
    return present;
  }
  std::size_t count = 0;
  for (fs::directory_iterator at(place, code), end; !code && at != end; at.increment(code)) {
    std::error_code none;
    if (!fs::exists(at->path() / "peers.csv", none)) {
      continue;
    }
    const std::string name = at->path().filename().string();
    const auto site = std::ranges::find(plan.sites, name, &PlannedSite::name);
    if (site == plan.sites.end()) {
      refuse("sites", plan_path,
             fmt::format("{} has a folder of the site {}, which the file does not list; it lists "
                         "all sites, those that are there and new ones",
                         place, printable(name)));
    }
    present[static_cast<std::size_t>(site - plan.sites.begin())] = read_present(at->path(), name);
    ++count;
  }
  if (count == 0) {
    refuse("out", place, "it is there already, and holds no folder of a site; name a new folder");
  }
  if (count == plan.sites.size()) {
    refuse(
        "out", place,
        fmt::format(
            "all sites of {} are there already; to add one, give it a line in that file; to make "
            "all anew, name another folder",
            plan_path));
  }
  require_settled(place, plan);
  return present;
}

StagedFolder::StagedFolder(const std::string& place) : place_(fs::path(place).lexically_normal()) {
  if (!place_.has_filename()) {
    place_ = place_.parent_path();
  }
  std::error_code code;
  grows_ = fs::is_directory(place_, code);
  made_ = grows_ ? (place_ / ".adding.XXXXXX").string() : place_.string() + ".XXXXXX";
  if (place_.empty() || ::mkdtemp(made_.data()) == nullptr) {
    const std::string why = place_.empty() ? "it is empty" : std::strerror(errno);
    made_.clear();
    refuse("out", place, fmt::format("nothing can be made there: {}", why));
  }
}

StagedFolder::~StagedFolder() {
  if (!made_.empty()) {
    std::error_code code;
    fs::remove_all(made_, code);
  }
}

fs::path StagedFolder::add_folder(const std::string& name) {
  const fs::path made = fs::path(made_) / name;
  fs::create_directory(made);
  fs::permissions(made, fs::perms::owner_all);
  staged_.emplace_back(made, name);
  return made;
}

void StagedFolder::add_file(const fs::path& relative, std::string_view text) {
  const fs::path made = fs::path(made_) / fmt::format("file.{}", staged_.size());
  write_new_file(made, text);
  staged_.emplace_back(made, relative);
}

void StagedFolder::set_overview(std::string_view text) {
  write_new_file(fs::path(made_) / kOverview, text);
}

void StagedFolder::put_in_place() {
  if (!grows_) {
    if (!move_to_free_place(made_, place_)) {
      refuse("out", place_.string(),
             fmt::format("it cannot be put there: {}", std::strerror(errno)));
    }
    made_.clear();
    return;
  }
  const auto give_up = [&](std::size_t count, const fs::path& at, const std::string& why) {
    for (std::size_t put = 0; put < count; ++put) {
      std::error_code code;
      fs::rename(place_ / staged_[put].second, staged_[put].first, code);
    }
    refuse("out", at.string(), "it cannot be put there: " + why);
  };
  for (std::size_t k = 0; k < staged_.size(); ++k) {
    if (!move_to_free_place(staged_[k].first, place_ / staged_[k].second)) {
      give_up(k, place_ / staged_[k].second,
              fmt::format("{}; move away what is there", std::strerror(errno)));
    }
  }
  std::error_code code;
  fs::rename(fs::path(made_) / kOverview, place_ / kOverview, code);
  if (code) {
    give_up(staged_.size(), place_ / kOverview, code.message());
  }
}

void write_new_file(const fs::path& path, std::string_view text) {
  FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  const int trouble = file ? write_all(file.get(), text) : errno;
  if (trouble != 0 || !file.close()) {
    throw std::runtime_error(fmt::format("{} could not be written: {}", printable(path.string()),
                                         std::strerror(trouble != 0 ? trouble : errno)));
  }
}

}  // namespace sotto::cli

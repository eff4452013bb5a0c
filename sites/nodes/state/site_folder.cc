#include <sotto/sites/nodes/state/site_folder.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/durable_file.h>
#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/base/unix_time.h>

namespace sotto {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 2> kStates = {"state.a", "state.b"};
constexpr std::size_t kMostLifeBytes = 16;
/// 2026-01-01, from which the numbers of starts count.
constexpr std::int64_t kEpoch = 1'767'225'600;

/// Throws Error where another user could change a file of the site, which must say what it holds.
void require_own(const std::string& folder, const std::string& path) {
  struct stat facts {};
  const bool is_folder = folder == path;
  if ((is_folder ? ::stat(path.c_str(), &facts) : ::lstat(path.c_str(), &facts)) != 0) {
    return;  // a file that is not there yet
  }
  if (!is_folder && !S_ISREG(facts.st_mode)) {
    refuse("state", folder, fmt::format("'{}' is no regular file; remove it", path));
  }
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0) {
    refuse("state", folder,
           fmt::format("'{}' belongs to another user, number {}, who can change it; give it to the "
                       "user that runs the site with `chown {} {}`",
                       path, facts.st_uid, ::geteuid(), path));
  }
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    refuse("state", folder,
           fmt::format("other users can change '{}' (mode {:04o}); take that away with "
                       "`chmod go-w {}`",
                       path, facts.st_mode & 07777U, path));
  }
}

/// Whether the bytes are a state that another version of the program has written, by all that they
/// say of it.
bool is_of_other_format(std::span<const std::byte> bytes) {
  const FileKind& kind = site_state_kind();
  ByteReader in(bytes);
  auto magic = kind.magic;
  in.read_into(std::span<char>(magic));
  const auto version = in.read<std::uint32_t>();
  return !in.failed() && magic == kind.magic && version != kind.version;
}

}  // namespace

Result<std::optional<FoundSiteState>> read_site_state(const std::string& folder) {
  std::optional<FoundSiteState> best;
  std::string trouble;
  for (const char* name : kStates) {
    const std::string path = (fs::path(folder) / name).string();
    std::error_code code;
    if (!fs::exists(path, code)) {
      continue;
    }
    const auto bytes = read_file(path, kMostStateBytes);
    auto state = bytes.ok() ? decode_site_state(*bytes) : Result<SiteStateFile>(bytes.status());
    if (!state.ok()) {
      trouble = state.status().with_context(path).message();
    } else if (!best || std::tie(state->life, state->number) >
                            std::tie(best->state.life, best->state.number)) {
      best = FoundSiteState{.state = std::move(*state), .file = path, .warning = {}};
    }
  }
  if (best && !trouble.empty()) {
    best->warning = trouble + "; the other state is taken instead";
  }
  if (!best && !trouble.empty()) {
    return Status(Fault::malformed,
                  fmt::format("{}, and there is no other; put back a copy of the folder, or start "
                              "anew with another one: the site then takes a neighbour's model",
                              trouble));
  }
  return best;
}

std::uint32_t SiteFolder::life_by_clock() {
  const auto since = static_cast<std::int64_t>(unix_time()) - kEpoch;
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(since, 1, std::numeric_limits<std::int32_t>::max()));
}

SiteFolder::SiteFolder(std::string path) : path_(std::move(path)) {
  std::error_code code;
  const fs::path parent = fs::path(path_).parent_path();
  if (!parent.empty()) {
    fs::create_directories(parent, code);
  }
  if ((::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) || !fs::is_directory(path_, code)) {
    refuse("state", path_, "it must name a folder that can be made and written");
  }
  require_own(path_, path_);
  for (const char* name : {"lock", "life", "privacy", kStates[0], kStates[1]}) {
    require_own(path_, file(name));
  }
  take_lock();
  try {
    count_start();
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

SiteFolder::~SiteFolder() { ::close(lock_); }

std::string SiteFolder::file(const char* name) const { return (fs::path(path_) / name).string(); }

std::string SiteFolder::doubt() const {
  std::error_code code;
  const fs::path parent = fs::canonical(fs::path(path_) / "..", code);
  struct stat facts {};
  const bool open = !code && ::stat(parent.c_str(), &facts) == 0 &&
                    (facts.st_mode & S_IWOTH) != 0 && (facts.st_mode & S_ISVTX) == 0;
  return open ? fmt::format(
                    "any user can put another folder in the place of '{}', as '{}' has mode "
                    "{:04o}; take that away with `chmod o-w {}` where others use this host",
                    path_, parent.string(), facts.st_mode & 07777U, parent.string())
              : "";
}

std::string SiteFolder::privacy_ledger() const { return file("privacy"); }

void SiteFolder::take_lock() {
  lock_ = ::open(file("lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (lock_ < 0) {
    refuse("state", path_, fmt::format("its lock cannot be opened: {}", std::strerror(errno)));
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    refuse("state", path_, "another process has this folder: is the site running already?");
  }
}

void SiteFolder::count_start() {
  std::uint32_t before = 0;
  std::error_code code;
  if (fs::exists(file("life"), code)) {
    const auto bytes = read_file(file("life"), kMostLifeBytes);
    std::string_view text;
    if (bytes.ok()) {
      text = {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
    }
    const auto life = take_number<std::uint32_t>(text);
    if (!life || text != "\n" || *life == std::numeric_limits<std::uint32_t>::max()) {
      refuse("state", path_,
             "the file 'life' in it is damaged; if no other process of this site runs, remove it");
    }
    before = *life;
  }
  constexpr std::uint32_t kStartsInARow = 600;
  const std::uint32_t now = life_by_clock();
  life_ = std::max(before + 1, now);
  clock_behind_s_ = before > now && before - now > kStartsInARow ? before - now : 0;
  const std::string text = fmt::format("{}\n", life_);
  if (Status status =
          write_durably(file("life"), std::as_bytes(std::span(text)), FileReaders::owner);
      !status.ok()) {
    refuse("state", path_, status.message());
  }
}

Result<std::optional<FoundSiteState>> SiteFolder::read() {
  auto found = read_site_state(path_);
  if (found.ok() && found->has_value()) {
    next_ = (*found)->file == file(kStates[0]) ? 1 : 0;
  }
  return found;
}

Result<std::string> SiteFolder::set_aside_damaged() {
  std::string all;
  for (const char* name : kStates) {
    std::error_code code;
    if (!fs::exists(file(name), code)) {
      continue;
    }
    const auto bytes = read_file(file(name), kMostStateBytes);
    const Status read = bytes.ok() ? decode_site_state(*bytes).status() : Status();
    if (read.ok() || is_of_other_format(*bytes)) {
      continue;
    }
    auto said = set_aside(file(name), read.message());
    if (!said.ok()) {
      return said;
    }
    all += (all.empty() ? "" : "; ") + *said;
  }
  return all;
}

Result<std::string> SiteFolder::set_aside(const std::string& path, std::string_view why) {
  const std::string aside = path + ".damaged";
  std::error_code code;
  fs::rename(path, aside, code);
  if (code) {
    return Status(Fault::io, fmt::format("{}: {}, and it cannot be renamed to {}: {}", path, why,
                                         aside, code.message()));
  }
  return fmt::format("{}: {}; it is kept as {}", path, why, aside);
}

Status SiteFolder::write(const SiteStateFile& state) {
  if (!broken_.ok()) {
    return broken_;
  }
  SectionFile sections = sections_of(state);
  sections.first = life_;
  sections.second = number_ + 1;
  const SectionParts bytes(site_state_kind(), sections);
  if (Status status = write_durably(file(kStates[next_]), bytes.parts(), FileReaders::owner);
      !status.ok()) {
    return broken_ = status.with_context("the site's state is not saved");
  }
  ++number_;
  next_ = 1 - next_;
  written_at_ = unix_time();
  return {};
}

}  // namespace sotto

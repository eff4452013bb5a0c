#include <sotto/sites/nodes/report/audit_log.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/json.h>
#include <sotto/base/json_text.h>
#include <sotto/base/unix_time.h>
#include <sotto/base/write_all.h>
#include <sotto/sites/nodes/report/event_json.h>

#include "internal/audit_chain.h"

namespace sotto {
namespace {

Status failed(std::string_view what) {
  return {Fault::io, fmt::format("the audit file {}: {}", what, std::strerror(errno))};
}

}  // namespace

AuditLog::AuditLog(std::string path, std::string site)
    : path_(std::move(path)), site_(std::move(site)) {
  head_.digest = std::string(internal::kAuditDigestLength, '0');
  struct stat facts {};
  const bool there = ::lstat(path_.c_str(), &facts) == 0;
  if (there && !S_ISREG(facts.st_mode)) {
    refuse("audit", path_, "it is no regular file; name another");
  }
  if (there && (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    refuse("audit", path_,
           fmt::format("other users can change it; take that away with `chmod go-w {}`", path_));
  }
  if (Status status = open(); !status.ok()) {  // no other process writes to it from now on
    refuse("audit", path_, status.message());
  }
  bool cut = false;
  // Looked at only now: another process may have written to it until then.
  if (::lstat(path_.c_str(), &facts) == 0 && facts.st_size > 0) {
    const auto checked = internal::check_audit_lines(path_);
    if (!checked.ok()) {
      refuse("audit", path_,
             fmt::format("{}; keep it as evidence, and name another file",
                         checked.status().message()));
    }
    cut = checked->cut;
    if (cut && ::truncate(path_.c_str(), static_cast<off_t>(checked->whole)) != 0) {
      refuse(
          "audit", path_,
          fmt::format("its last line is cut, and cannot be taken away: {}", std::strerror(errno)));
    }
    head_ = checked->head.records > 0 ? checked->head : head_;
  }
  const Status status = cut ? append({SiteEvent::Level::warning, SiteEvent::Kind::audit_cut,
                                      "a crash cut the last line, which was taken away"})
                            : Status();
  if (!status.ok()) {
    refuse("audit", path_, status.message());
  }
}

bool AuditLog::concerns(const SiteEvent& event) {
  using EventKind = SiteEvent::Kind;
  constexpr auto kDaily = std::to_array<EventKind>(
      {EventKind::round, EventKind::joining, EventKind::joined, EventKind::peer_late,
       EventKind::peer_unreachable, EventKind::loss_jump, EventKind::setting,
       EventKind::tensorboard_failed});
  return std::ranges::find(kDaily, event.kind) == kDaily.end();
}

Status AuditLog::open() {
  const bool again = static_cast<bool>(file_);
  FileDescriptor file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
                             S_IRUSR | S_IWUSR));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) {
    return failed("cannot be opened");
  }
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    return {Fault::io, "another process writes to it: is the site running already?"};
  }
  if (again && facts.st_size > 0) {
    return {Fault::io, "the audit file was replaced by one that is not empty; move it away"};
  }
  file_ = std::move(file);
  return {};
}

Status AuditLog::write_line(const std::string& record, off_t at) {
  const std::string digest = internal::audit_digest(head_.digest, record);
  if (const int error = write_all(file_.get(), fmt::format("{} {}\n", digest, record));
      error != 0) {
    (void)!::ftruncate(file_.get(), at);  // so that no half of a line stays
    errno = error;
    return failed("cannot be written");
  }
  head_ = {
      .records = at == 0 ? 1 : head_.records + 1, .number = head_.number + 1, .digest = digest};
  return {};
}

Status AuditLog::begin() {
  const Json record = {{"number", head_.number + 1},
                       {"time", utc_text(unix_time())},
                       {"event", std::string(internal::kAuditBegins)},
                       {"site", site_},
                       {"previous", head_.digest}};
  return write_line(json_text(record), 0);
}

bool AuditLog::moved() const {
  struct stat ours {};
  struct stat named {};
  return ::fstat(file_.get(), &ours) != 0 || ::lstat(path_.c_str(), &named) != 0 ||
         ours.st_ino != named.st_ino || ours.st_dev != named.st_dev;
}

std::string AuditLog::text_of(const SiteEvent& event) const {
  constexpr std::size_t kLongestRecord =
      internal::kLongestAuditLine - internal::kAuditDigestLength - 2;
  Json record = {{"number", head_.number + 1}};
  record.update(event_json(event, unix_time()));
  if (missing_ > 0) {
    record["missing"] = missing_;
  }
  std::string text = json_text(record);
  if (text.size() > kLongestRecord) {
    record["text"] = std::string(excerpt(event.text));
    text = json_text(record);
  }
  return text;
}

Status AuditLog::append(const SiteEvent& event) {
  if (!file_ || moved()) {
    if (Status status = open(); !status.ok()) {
      return status;
    }
  }
  struct stat facts {};
  if (::fstat(file_.get(), &facts) != 0) {
    return failed("cannot be written");
  }
  if (facts.st_size == 0) {  // it is new, or was copied and truncated
    if (Status status = begin(); !status.ok()) {
      return status;
    }
    if (::fstat(file_.get(), &facts) != 0) {
      return failed("cannot be written");
    }
  }
  if (Status status = write_line(text_of(event), facts.st_size); !status.ok()) {
    return status;
  }
  missing_ = 0;
  return ::fdatasync(file_.get()) == 0 ? Status() : failed("cannot be synced");
}

Status AuditLog::record(const SiteEvent& event) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t before = head_.number;
  Status status = append(event);
  missing_ += head_.number == before ? 1 : 0;
  return status;
}

AuditHead AuditLog::head() const {
  const std::lock_guard lock(mutex_);
  return head_;
}

}  // namespace sotto

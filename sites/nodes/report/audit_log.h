// A site's audit file: who was let in, refused, cut off and when, which lists came into force,
// which models went out. Lines are only ever appended, and each is tied to all before it:
//
//   DIGEST {"number":17,"time":"…","level":"info","event":"peer-up","peer":"bank","text":"…"}
//
// DIGEST is the SHA-256, in hex, of the previous line's DIGEST, a newline, and the line's JSON. The
// first line is {"event":"audit-begins", …} and names the digest that it continues from: 64 zeros,
// or that of the last line of a file which was moved away. So nobody can change, leave out or
// reorder lines without changing all digests after them. Who can write the file can write all of
// it anew: note the last digest, which `sotto status` shows, somewhere else.
//
// A record is on disk before record() returns. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>

#include <sotto/base/file_descriptor.h>
#include <sotto/base/status.h>
#include <sotto/sites/nodes/report/site_report.h>

namespace sotto {

/// Checks every line of an audit file. Fault::malformed names the first line that does not follow
/// from those before; Fault::io a file that cannot be read.
Result<AuditHead> check_audit(const std::string& path);

class AuditLog {
 public:
  /// Opens the audit file of the site `site`, or makes one that its owner alone can read. A last
  /// line that was cut by a crash is taken away, and the next record says so. Throws Error for a
  /// file whose lines do not follow from each other, and for one that cannot be written, that
  /// another process writes to, or that other users can change.
  AuditLog(std::string path, std::string site);
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  /// Whether events of this kind belong into an audit: all but those of the daily course, as
  /// rounds.
  static bool concerns(const SiteEvent& event);

  /// Appends one record. If the file was moved away, a new one goes on from its last digest. On a
  /// fault the record is missing, and the next one that can be written says how many are.
  Status record(const SiteEvent& event);
  /// The number and the digest of the last record.
  AuditHead head() const;

 private:
  Status open();
  Status begin();
  Status append(const SiteEvent& event);
  /// Writes a record as the next line, at the end of a file of `at` bytes.
  Status write_line(const std::string& record, off_t at);
  std::string text_of(const SiteEvent& event) const;
  bool moved() const;

  const std::string path_;
  const std::string site_;
  mutable std::mutex mutex_;
  FileDescriptor file_;
  AuditHead head_;
  std::uint64_t missing_ = 0;  ///< records that could not be written
};

}  // namespace sotto

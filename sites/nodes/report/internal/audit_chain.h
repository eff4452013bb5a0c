// The chain of an audit file's lines (audit_log.h). Not for users. Plain values and functions that
// keep nothing; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <sotto/base/status.h>
#include <sotto/sites/nodes/report/site_report.h>

namespace sotto::internal {

inline constexpr std::size_t kAuditDigestLength = 64;  ///< hex digits
inline constexpr std::size_t kLongestAuditLine = 1 << 16;
inline constexpr std::string_view kAuditBegins = "audit-begins";  ///< event of a first line

/// The digest of a record that follows the line with this one.
std::string audit_digest(const std::string& previous, std::string_view record);

/// What reading a file gives: its chain, and the bytes of the whole lines.
struct CheckedAudit {
  AuditHead head;
  std::uint64_t whole = 0;
  bool cut = false;  ///< bytes without an end of line come behind
};

/// Checks all whole lines of a file; faults as check_audit.
Result<CheckedAudit> check_audit_lines(const std::string& path);

}  // namespace sotto::internal

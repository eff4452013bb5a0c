#include "audit_chain.h"

#include <exception>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/base/input_file.h>
#include <sotto/base/json.h>
#include <sotto/base/json_text.h>
#include <sotto/sites/nodes/report/audit_log.h>

namespace sotto {
namespace internal {
namespace {

constexpr std::size_t kMostDepth = 4;

/// Follows the chain of a file, line by line.
class Chain {
 public:
  /// Takes a whole line without its end; a fault says what is wrong with it.
  Status take(std::string_view line) {
    const Status status = follow(line);
    return status.ok() ? status
                       : Status(status.fault(),
                                fmt::format("line {}: {}", head_.records + 1, status.message()));
  }
  const AuditHead& head() const { return head_; }

 private:
  Status follow(std::string_view line) {
    if (line.size() < kAuditDigestLength + 2 || line[kAuditDigestLength] != ' ') {
      return {Fault::malformed, "it is no digest and record"};
    }
    const std::string_view text = line.substr(kAuditDigestLength + 1);
    const auto number = number_in(text);
    if (!number.ok()) {
      return number.status();
    }
    if (audit_digest(head_.digest, text) != line.substr(0, kAuditDigestLength)) {
      return {Fault::malformed, "its digest is not that of its record after the line before"};
    }
    if (head_.records > 0 && *number != head_.number + 1) {
      return {Fault::malformed, fmt::format("it has number {} after {}", *number, head_.number)};
    }
    head_.digest = line.substr(0, kAuditDigestLength);
    head_.number = *number;
    ++head_.records;
    return {};
  }

  /// The number of a record, the first of which also says what the file continues from.
  Result<std::uint64_t> number_in(std::string_view text) {
    try {
      const Json record = parse_json<Json>(text, kMostDepth);
      const auto found = record.find("number");
      if (found == record.end() || !found->is_number_unsigned()) {
        return Status(Fault::malformed, "its record has no number");
      }
      if (head_.records == 0) {
        const auto previous = record.find("previous");
        if (record.value("event", "") != kAuditBegins || previous == record.end() ||
            !previous->is_string()) {
          return Status(Fault::malformed, "a file begins with what it continues from");
        }
        head_.digest = previous->get<std::string>();
      }
      return found->get<std::uint64_t>();
    } catch (const std::exception& error) {
      return Status(Fault::malformed, error.what());
    }
  }

  AuditHead head_;
};

}  // namespace

std::string audit_digest(const std::string& previous, std::string_view record) {
  const std::string text = fmt::format("{}\n{}", previous, record);
  return sha256_hex(std::as_bytes(std::span(text)));
}

Result<CheckedAudit> check_audit_lines(const std::string& path) {
  auto file = InputFile::open(path, kPlainFiles);
  if (!file.ok()) {
    return file.status();
  }
  Chain chain;
  CheckedAudit checked;
  std::string pending;
  std::vector<std::byte> piece(kLongestAuditLine);
  for (;;) {
    const auto size = file->read_some(piece);
    if (!size.ok()) {
      return size.status();
    }
    if (*size == 0) {
      break;
    }
    pending.append(reinterpret_cast<const char*>(piece.data()), *size);
    std::size_t begin = 0;
    for (std::size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (Status status = chain.take(std::string_view(pending).substr(begin, end - begin));
          !status.ok()) {
        return status;
      }
      checked.whole += end - begin + 1;
    }
    pending.erase(0, begin);
    if (pending.size() > kLongestAuditLine) {
      return Status(Fault::malformed, "it has a line that is longer than any record");
    }
  }
  checked.head = chain.head();
  checked.cut = !pending.empty();
  return checked;
}

}  // namespace internal

Result<AuditHead> check_audit(const std::string& path) {
  const auto checked = internal::check_audit_lines(path);
  if (!checked.ok()) {
    return checked.status();
  }
  if (checked->cut) {
    return Status(Fault::malformed, fmt::format("line {}: it is cut", checked->head.records + 1));
  }
  return checked->head;
}

}  // namespace sotto

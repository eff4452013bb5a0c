// A site's log, on standard error or in a file: a line for each event, for people or as JSON.
// Thread-safe.
#pragma once

#include <memory>
#include <string>

#include <sotto/base/setting_text.h>
#include <sotto/sites/nodes/report/site_report.h>

namespace spdlog {
class logger;
}  // namespace spdlog

namespace sotto::cli {

enum class LogFormat {
  text,  ///< 2026-11-21T12:00:00.000Z warning peer-down bank: the connection ended
  json,  ///< {"time":"…","level":"warning","event":"peer-down","peer":"bank","text":"…"}
};

/// Throws Error unless `name` is text or json.
LogFormat parse_log_format(const std::string& name);

class EventLog {
 public:
  /// Quiet: warnings and errors only. `path`: the file that lines are appended to, and which may be
  /// moved away or truncated at any time; empty: standard error. `flags`, which must outlive the
  /// log, spells what is said of that file. Throws Error when it cannot be opened.
  EventLog(LogFormat format, bool quiet, const std::string& path, const Spelling& flags);

  void write(const SiteEvent& event);

 private:
  LogFormat format_;
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace sotto::cli

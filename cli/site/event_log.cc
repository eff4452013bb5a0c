#include "event_log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <mutex>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/json_text.h>
#include <sotto/base/unix_time.h>
#include <sotto/base/write_all.h>
#include <sotto/observe/growing_file.h>
#include <sotto/sites/nodes/report/event_json.h>

namespace sotto::cli {
namespace {

std::string text_line(const SiteEvent& event) {
  std::string line =
      fmt::format("{} {} {}", utc_text(unix_time()), level_name(event.level), name_of(event.kind));
  if (event.kind == SiteEvent::Kind::round && event.round) {
    line += fmt::format(" {}", *event.round);
  }
  if (!event.peer.empty()) {
    line += fmt::format(" {}", event.peer);
  }
  // One event, one line, whatever a peer may have put into it.
  return one_line(fmt::format("{}: {}", line, event.text));
}

/// Lines of a file, which may be moved away or truncated meanwhile; they go to standard error once
/// it cannot be written.
class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  FileSink(const std::string& path, const Spelling& flags)
      : file_("log_file", path, true, [&flags](const SettingText& trouble) {
          (void)write_all(STDERR_FILENO, fmt::format("sotto: warning: {}\n", trouble.text(flags)));
        }) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string line =
        fmt::format("{}\n", std::string_view(message.payload.data(), message.payload.size()));
    if (!file_.append(line)) {
      (void)write_all(STDERR_FILENO, line);
    }
  }
  void flush_() override {}

  GrowingFile file_;
};

spdlog::sink_ptr make_sink(const std::string& path, const Spelling& flags) {
  return path.empty() ? spdlog::sink_ptr(std::make_shared<spdlog::sinks::stderr_sink_mt>())
                      : std::make_shared<FileSink>(path, flags);
}

}  // namespace

LogFormat parse_log_format(const std::string& name) {
  if (name != "text" && name != "json") {
    refuse("log", name, "it is text or json");
  }
  return name == "text" ? LogFormat::text : LogFormat::json;
}

EventLog::EventLog(LogFormat format, bool quiet, const std::string& path, const Spelling& flags)
    : format_(format), logger_(std::make_shared<spdlog::logger>("site", make_sink(path, flags))) {
  logger_->set_pattern("%v");
  logger_->set_level(quiet ? spdlog::level::warn : spdlog::level::info);
  logger_->flush_on(spdlog::level::info);
}

void EventLog::write(const SiteEvent& event) {
  const auto level = event.level == SiteEvent::Level::info      ? spdlog::level::info
                     : event.level == SiteEvent::Level::warning ? spdlog::level::warn
                                                                : spdlog::level::err;
  if (logger_->should_log(level)) {
    logger_->log(level, format_ == LogFormat::text ? text_line(event)
                                                   : json_text(event_json(event, unix_time())));
  }
}

}  // namespace sotto::cli

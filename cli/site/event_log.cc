#include "event_log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/json_text.h>
#include <sotto/console/output.h>

namespace sotto::cli {
namespace {

std::string present() {
  const auto now = std::chrono::system_clock::now();
  const auto whole = std::chrono::floor<std::chrono::seconds>(now);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(whole)),
                     std::chrono::duration_cast<std::chrono::milliseconds>(now - whole).count());
}

const char* name_of(SiteEvent::Level level) {
  switch (level) {
    case SiteEvent::Level::info:
      return "info";
    case SiteEvent::Level::warning:
      return "warning";
    case SiteEvent::Level::error:
      return "error";
  }
  return "";
}

std::string text_line(const SiteEvent& event) {
  std::string line = fmt::format("{} {} {}", present(), name_of(event.level), event.kind);
  if (event.kind == "round" && event.round) {
    line += fmt::format(" {}", *event.round);
  }
  if (!event.peer.empty()) {
    line += fmt::format(" {}", event.peer);
  }
  // One event, one line, whatever a peer may have put into it.
  return one_line(fmt::format("{}: {}", line, event.text));
}

std::string json_line(const SiteEvent& event) {
  study::Json json = {
      {"time", present()}, {"level", name_of(event.level)}, {"event", std::string(event.kind)}};
  if (event.round) {
    json["round"] = *event.round;
  }
  if (!event.peer.empty()) {
    json["peer"] = event.peer;
  }
  for (const SiteFigure& figure : event.figures) {
    std::visit([&](auto value) { json[std::string(figure.name)] = value; }, figure.value);
  }
  json["text"] = event.text;
  return json_text(json);
}

}  // namespace

LogFormat parse_log_format(const std::string& name) {
  if (name != "text" && name != "json") {
    refuse("--log", name, "it is text or json");
  }
  return name == "text" ? LogFormat::text : LogFormat::json;
}

EventLog::EventLog(LogFormat format, bool quiet)
    : format_(format),
      logger_(std::make_shared<spdlog::logger>("site",
                                               std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_pattern("%v");
  logger_->set_level(quiet ? spdlog::level::warn : spdlog::level::info);
  logger_->flush_on(spdlog::level::info);
}

void EventLog::write(const SiteEvent& event) {
  const auto level = event.level == SiteEvent::Level::info      ? spdlog::level::info
                     : event.level == SiteEvent::Level::warning ? spdlog::level::warn
                                                                : spdlog::level::err;
  if (logger_->should_log(level)) {
    logger_->log(level, format_ == LogFormat::text ? text_line(event) : json_line(event));
  }
}

}  // namespace sotto::cli

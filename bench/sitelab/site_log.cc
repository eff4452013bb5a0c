#include "site_log.h"

#include <cstddef>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <sstream>

#include <nlohmann/json.hpp>

#include <sotto/base/error.h>
#include <sotto/base/json_text.h>

#include "site_name.h"

namespace sotto::sitelab {
namespace {

/// "2026-11-21T12:00:00.123Z"
double parse_time(const std::string& text) {
  std::tm parts = {};
  double fraction = 0;
  std::istringstream in(text);
  in >> std::get_time(&parts, "%Y-%m-%dT%H:%M:%S") >> fraction;
  return static_cast<double>(::timegm(&parts)) + fraction;
}

/// A line of a log; null where it is cut off in the middle, or what a process said in its last
/// need.
nlohmann::json parse_entry(const std::string& line) {
  constexpr std::size_t kDeepest = 16;
  try {
    return parse_json<nlohmann::json>(line, kDeepest);
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

std::vector<LogEntry> read_log(const std::string& path) {
  std::vector<LogEntry> entries;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json json = parse_entry(line);
    if (!json.is_object() || !json.contains("time") || !json.contains("event")) {
      continue;
    }
    entries.push_back({.time = parse_time(json.at("time")),
                       .event = json.at("event"),
                       .peer = site_rank(json.value("peer", "")),
                       .text = json.value("text", "")});
  }
  return entries;
}

}  // namespace sotto::sitelab

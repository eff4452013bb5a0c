// The log of a real site, as its process left it. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include <sotto/base/ids.h>

namespace sotto::sitelab {

/// An entry of a site's log.
struct LogEntry {
  double time = 0;  ///< seconds since 1970
  std::string event;
  Rank peer = -1;
  std::string text;
};

/// Lines that are no entries are left out.
std::vector<LogEntry> read_log(const std::string& path);

}  // namespace sotto::sitelab

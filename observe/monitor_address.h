// The address at which a monitor listens: loopback only. A plain value, and a pure function;
// thread-safe.
#pragma once

#include <string>

namespace sotto {

struct MonitorAddress {
  std::string host;
  int port = 0;
};

/// "127.0.0.1:9100", or "9100" alone, which is equivalent. Throws Error for an address that is not
/// loopback.
MonitorAddress parse_monitor_address(const std::string& text);

}  // namespace sotto

// A small HTTP server on loopback that shows operators and their tools the state of a running
// process.
//
//   /healthz   200 while the process lives        and the pages that it is given, as /metrics
//
// Bounded: GET only, a few threads and connections that wait for one, a second for each request,
// and requests that name this host, so that a page in a browser here cannot ask through a name of
// its own. It shows no secrets and changes nothing.
//
// Thread safety: the object belongs to one thread; it makes pages in threads of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sotto/observe/monitor_address.h>

namespace sotto {

/// A page, as it is when it is asked for.
struct MonitorPage {
  std::string path;
  std::string type;
  /// Makes the page's text; called from several threads at a time.
  std::function<std::string()> make;
};

/// The type of pages in Prometheus' text format.
inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

class Monitor {
 public:
  /// Listens. Throws std::runtime_error when the address cannot be had.
  Monitor(const MonitorAddress& address, std::vector<MonitorPage> pages);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// The body of a monitor's answer to GET `path`; throws std::runtime_error when no monitor answers.
std::string ask_monitor(const MonitorAddress& address, const std::string& path);

}  // namespace sotto

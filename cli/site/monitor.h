// How a running site stands, for operators and their tools: a small HTTP server on loopback.
//
//   /metrics   Prometheus' text format      /status   JSON      /healthz   200 while the site lives
//
// Bounded: GET only, two threads, a few connections that wait for one, a second for each request,
// and requests that name this host, so that a page in a browser here cannot ask through a name of
// its own. It tells nothing secret, and changes nothing.
//
// Thread safety: the object belongs to one thread; it asks the board from threads of its own.
#pragma once

#include <memory>

#include <sotto/trainers/federated/site_report.h>

#include "site_config.h"

namespace sotto::cli {

class Monitor {
 public:
  /// Listens. Throws std::runtime_error when the address cannot be had.
  Monitor(const MonitorAddress& address, const SiteBoard& board);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// What a running site answers to GET `path`; throws std::runtime_error when there is none that
/// answers.
std::string ask_monitor(const MonitorAddress& address, const std::string& path);

}  // namespace sotto::cli

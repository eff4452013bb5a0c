#include <sotto/comm/store.h>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "internal/address.h"
#include "internal/host_port.h"

namespace sotto {
namespace {

constexpr std::string_view kForms =
    "use memory:, file:DIR, tcp://HOST:PORT or redis://HOST:PORT/PREFIX";

/// HOST:PORT of a URL's rest, and in `*path` what follows the first '/'.
internal::HostPort parse_address(const std::string& url, std::string_view rest, std::string* path) {
  const auto slash = rest.find('/');
  if (slash != std::string_view::npos) {
    *path = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
  }
  const auto address = internal::parse_host_port(rest);
  if (!address) {
    refuse("store", url, fmt::format("{}, the port a number from 1 to 65535", kForms));
  }
  return *address;
}

}  // namespace

std::shared_ptr<Store> make_store(const std::string& url, int rank, bool insecure,
                                  const std::optional<Security>& security, Deadline known_by) {
  const std::string_view view = url;
  const auto after = [&](std::string_view scheme) { return view.substr(scheme.size()); };
  std::string path;
  if (view == "memory:") {
    return make_memory_store();
  }
  if (view.starts_with("file:")) {
    return make_file_store(std::string(after("file:")));
  }
  if (view.starts_with("tcp://")) {
    const auto address = parse_address(url, after("tcp://"), &path);
    if (!path.empty()) {
      refuse("store", url, kForms);
    }
    return make_tcp_store(address.host, address.port, rank == 0, insecure, security, known_by);
  }
  if (view.starts_with("redis://")) {
    if (security && !insecure) {
      refuse("store", url,
             "Redis is reached in plain text, which would undo the keys; meet at tcp://HOST:PORT "
             "of node 0, or allow plain text with --insecure");
    }
    const auto address = parse_address(url, after("redis://"), &path);
    internal::await_name("store", address.host, known_by);
    return make_redis_store(address.host, address.port, path,
                            known_by.stop() == nullptr ? StopRequest() : *known_by.stop());
  }
  refuse("store", url, kForms);
}

#ifndef SOTTO_HAVE_ZMQ
std::shared_ptr<Store> make_tcp_store(const std::string&, int, bool, bool,
                                      const std::optional<Security>&, Deadline) {
  refuse("store", "tcp:", "this build lacks ZeroMQ; build with libzmq3-dev and cppzmq-dev");
}
#endif

#ifndef SOTTO_HAVE_REDIS
std::shared_ptr<Store> make_redis_store(const std::string&, int, const std::string&, StopRequest) {
  refuse("store", "redis:", "this build lacks hiredis; build with libhiredis-dev");
}
#endif

}  // namespace sotto

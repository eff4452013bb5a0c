#include <sotto/comm/store.h>

#include <charconv>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

constexpr std::string_view kForms =
    "use memory:, file:DIR, tcp://HOST:PORT or redis://HOST:PORT/PREFIX";

struct Address {
  std::string host;
  int port = 0;
  std::string path;  ///< what follows the first '/'
};

/// HOST:PORT or HOST:PORT/PATH; an IPv6 host stands in brackets.
Address parse_address(const std::string& url, std::string_view rest) {
  Address address;
  const auto slash = rest.find('/');
  if (slash != std::string_view::npos) {
    address.path = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
  }
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    refuse("store", url, kForms);
  }
  auto host = rest.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  address.host = host;
  const auto port = rest.substr(colon + 1);
  const auto [end, code] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (code != std::errc() || end != port.data() + port.size() || address.port < 1 ||
      address.port > 65535) {
    refuse("store", url, "the port is a number from 1 to 65535");
  }
  return address;
}

}  // namespace

std::shared_ptr<Store> make_store(const std::string& url, int rank, bool insecure) {
  const std::string_view view = url;
  const auto after = [&](std::string_view scheme) { return view.substr(scheme.size()); };
  if (view == "memory:") {
    return make_memory_store();
  }
  if (view.starts_with("file:")) {
    return make_file_store(std::string(after("file:")));
  }
  if (view.starts_with("tcp://")) {
    const auto address = parse_address(url, after("tcp://"));
    if (!address.path.empty()) {
      refuse("store", url, kForms);
    }
    return make_tcp_store(address.host, address.port, rank == 0, insecure);
  }
  if (view.starts_with("redis://")) {
    const auto address = parse_address(url, after("redis://"));
    return make_redis_store(address.host, address.port, address.path);
  }
  refuse("store", url, kForms);
}

#ifndef SOTTO_HAVE_ZMQ
std::shared_ptr<Store> make_tcp_store(const std::string&, int, bool, bool) {
  refuse("store", "tcp:", "this build lacks ZeroMQ; build with libzmq3-dev and cppzmq-dev");
}
#endif

#ifndef SOTTO_HAVE_REDIS
std::shared_ptr<Store> make_redis_store(const std::string&, int, const std::string&) {
  refuse("store", "redis:", "this build lacks hiredis; build with libhiredis-dev");
}
#endif

}  // namespace sotto

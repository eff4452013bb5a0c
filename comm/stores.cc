#include <sotto/comm/stores.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/comm/shared_store.h>

#include "internal/address/address.h"
#include "internal/address/host_port.h"

namespace sotto {
namespace {

constexpr std::string_view kForms =
    "use memory:, file:DIR, tcp://HOST:PORT, redis://HOST:PORT/PREFIX or torch://HOST:PORT/PREFIX";

/// A URL, taken apart.
struct StoreUrl {
  enum class Kind { memory, file, tcp, redis, torch };
  Kind kind = Kind::memory;
  internal::HostPort address{};  ///< host and port, for tcp, redis and torch
  std::string path;              ///< folder for file; prefix of the keys for redis and torch
};

/// HOST:PORT of a URL's rest, and what follows the first '/'.
void parse_address(const std::string& url, std::string_view rest, StoreUrl& parsed) {
  const auto slash = rest.find('/');
  if (slash != std::string_view::npos) {
    parsed.path = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
  }
  const auto address = internal::parse_host_port(rest);
  if (!address) {
    refuse("store", url, fmt::format("{}, the port a number from 1 to 65535", kForms));
  }
  parsed.address = *address;
}

StoreUrl parse_url(const std::string& url) {
  using Kind = StoreUrl::Kind;
  const std::string_view view = url;
  StoreUrl parsed;
  if (view.starts_with("file:")) {
    return {.kind = Kind::file, .path = url.substr(url.find(':') + 1)};
  }
  for (const auto& [scheme, kind] : {std::pair<std::string_view, Kind>{"tcp://", Kind::tcp},
                                     {"redis://", Kind::redis},
                                     {kTorchScheme, Kind::torch}}) {
    if (view.starts_with(scheme)) {
      parsed.kind = kind;
      parse_address(url, view.substr(scheme.size()), parsed);
    }
  }
  if (parsed.kind == Kind::tcp && !parsed.path.empty()) {
    refuse("store", url, kForms);
  }
  if (parsed.kind == Kind::memory && view != "memory:") {
    refuse("store", url, kForms);
  }
  return parsed;
}

/// How long a name is awaited that is not known yet, as that of a host that has just been started.
constexpr std::chrono::seconds kSharedKnownWithin{30};

std::shared_ptr<Store> open_shared(const StoreUrl& url, StopRequest stop) {
  const auto& [host, port] = url.address;
  switch (url.kind) {
    case StoreUrl::Kind::file:
      return make_file_store(url.path);
    case StoreUrl::Kind::torch:
      return make_torch_store(host, port, url.path, std::move(stop));
    default:
      return make_redis_store(host, port, url.path, std::move(stop));
  }
}

}  // namespace

void check_store_url(const std::string& url) { (void)parse_url(url); }

std::shared_ptr<Store> make_store(const std::string& url, int rank, const StoreOptions& options) {
  if (url.empty()) {
    throw Error("rendezvous",
                "the nodes need a place to meet: set MASTER_ADDR and MASTER_PORT, or give a "
                "URL: tcp://HOST:PORT, file:DIRECTORY, redis://HOST:PORT/PREFIX or "
                "torch://HOST:PORT/PREFIX");
  }
  const StoreUrl parsed = parse_url(url);
  const auto& [host, port] = parsed.address;
  switch (parsed.kind) {
    case StoreUrl::Kind::memory:
      return make_memory_store();
    case StoreUrl::Kind::file:
      return make_file_store(parsed.path);
    case StoreUrl::Kind::tcp:
      return make_tcp_store(host, port, rank == 0, options);
    case StoreUrl::Kind::redis:
    case StoreUrl::Kind::torch:
      break;
  }
  if (options.security && !options.insecure) {
    refuse("store", url,
           "it is reached in plain text, which would undo the keys; meet at " +
               mention("rendezvous", "tcp://HOST:PORT") + " of node 0, or allow plain text with " +
               mention("insecure", "true"));
  }
  (void)internal::await_name("store", host, options.known_by);
  const StopRequest* asked = options.known_by.stop();
  const StopRequest stop = asked == nullptr ? StopRequest() : *asked;
  return parsed.kind == StoreUrl::Kind::redis ? make_redis_store(host, port, parsed.path, stop)
                                              : make_torch_store(host, port, parsed.path, stop);
}

bool names_store(std::string_view text) {
  constexpr auto kSchemes =
      std::to_array<std::string_view>({"memory:", "file:", "tcp://", "redis://", kTorchScheme});
  return std::ranges::any_of(kSchemes,
                             [&](std::string_view scheme) { return text.starts_with(scheme); });
}

void check_shared_store(std::string_view field, const std::string& url) {
  using Kind = StoreUrl::Kind;
  try {
    const StoreUrl parsed = parse_url(url);
    if ((parsed.kind == Kind::file && !parsed.path.empty()) || parsed.kind == Kind::redis ||
        parsed.kind == Kind::torch) {
      return;
    }
  } catch (const Error& error) {
    throw error.renamed(field);
  }
  refuse(field, url,
         "nodes that come and go meet in file:DIR, redis://HOST:PORT/PREFIX or "
         "torch://HOST:PORT/PREFIX, which need none of them to be there");
}

std::shared_ptr<SharedStore> make_shared_store(std::string_view field, const std::string& url,
                                               StopRequest stop) {
  check_shared_store(field, url);
  const StoreUrl parsed = parse_url(url);
  if (parsed.kind == StoreUrl::Kind::torch) {
    (void)internal::await_name(field, parsed.address.host,
                               Deadline::after(kSharedKnownWithin, &stop));
  }
  try {
    auto shared = std::dynamic_pointer_cast<SharedStore>(open_shared(parsed, std::move(stop)));
    check(shared != nullptr, "stores in files, in Redis and in a TCPStore are shared");
    return shared;
  } catch (const Error& error) {
    throw error.renamed(field);
  }
}

std::string server_of_store(const std::string& url) {
  const StoreUrl parsed = parse_url(url);
  const auto& [host, port] = parsed.address;
  const bool ipv6 = host.find(':') != std::string::npos;
  return port == 0 ? "" : fmt::format(fmt::runtime(ipv6 ? "[{}]:{}" : "{}:{}"), host, port);
}

#if !SOTTO_HAVE_ZMQ
std::shared_ptr<Store> make_tcp_store(const std::string&, int, bool, const StoreOptions&) {
  refuse("store", "tcp:", "this build lacks ZeroMQ; build with libzmq3-dev and cppzmq-dev");
}
#endif

#if !SOTTO_HAVE_REDIS
std::shared_ptr<Store> make_redis_store(const std::string&, int, const std::string&, StopRequest) {
  refuse("store", "redis:", "this build lacks hiredis; build with libhiredis-dev");
}
#endif

}  // namespace sotto

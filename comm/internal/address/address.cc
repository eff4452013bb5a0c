#include "address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>

#include "host_port.h"

namespace sotto::internal {
namespace {

/// Pause between two looks for a name: long enough for a server that many nodes ask.
constexpr std::chrono::seconds kNamePause{1};

/// An IPv4 or IPv6 address as the system keeps it.
struct Resolved {
  sockaddr_storage storage{};
  bool ipv6() const { return storage.ss_family == AF_INET6; }
  in_addr ipv4_address() const {
    sockaddr_in address{};
    std::memcpy(&address, &storage, sizeof address);
    return address.sin_addr;
  }
  in6_addr ipv6_address() const {
    sockaddr_in6 address{};
    std::memcpy(&address, &storage, sizeof address);
    return address.sin6_addr;
  }
  bool loopback() const {
    if (ipv6()) {
      const auto address = ipv6_address();
      return IN6_IS_ADDR_LOOPBACK(&address) != 0;
    }
    return (ntohl(ipv4_address().s_addr) >> 24) == 127;
  }
  bool wildcard() const {
    if (ipv6()) {
      const auto address = ipv6_address();
      return IN6_IS_ADDR_UNSPECIFIED(&address) != 0;
    }
    return ipv4_address().s_addr == INADDR_ANY;
  }
  /// "%eth0" of a link-local address, which means nothing without its link; else empty.
  std::string zone() const {
    sockaddr_in6 address{};
    std::memcpy(&address, &storage, sizeof address);
    char name[IF_NAMESIZE] = {};
    const bool named =
        address.sin6_scope_id != 0 && ::if_indextoname(address.sin6_scope_id, name) != nullptr;
    return named ? std::string("%") + name : std::string();
  }
  std::string numeric() const {
    char text[INET6_ADDRSTRLEN] = {};
    if (ipv6()) {
      const auto address = ipv6_address();
      ::inet_ntop(AF_INET6, &address, text, sizeof text);
      return text + zone();
    } else {
      const auto address = ipv4_address();
      ::inet_ntop(AF_INET, &address, text, sizeof text);
    }
    return text;
  }
};

Resolved copy_of(const sockaddr* address) {
  Resolved resolved;
  std::memcpy(&resolved.storage, address,
              address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  return resolved;
}

using Interfaces = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

/// Null where the system does not tell.
Interfaces list_interfaces() {
  ifaddrs* list = nullptr;
  return {::getifaddrs(&list) == 0 ? list : nullptr, &::freeifaddrs};
}

/// The first address of an interface, IPv4 before IPv6.
std::optional<Resolved> find_interface(const std::string& name) {
  const auto list = list_interfaces();
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* one = list.get(); one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == family && name == one->ifa_name) {
        return copy_of(one->ifa_addr);
      }
    }
  }
  return std::nullopt;
}

std::vector<Resolved> find_hosts(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0) {
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  std::vector<Resolved> found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
      if (one->ai_family == family && found.size() < kMostAddresses) {
        found.push_back(copy_of(one->ai_addr));
      }
    }
  }
  return found;
}

std::optional<Resolved> find_host(const std::string& name) {
  const auto found = find_hosts(name);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

/// Whether it is an address in numbers, for which nobody needs to be asked.
bool is_numeric(const std::string& text) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* list = nullptr;
  const bool numeric = ::getaddrinfo(text.c_str(), nullptr, &hints, &list) == 0;
  if (numeric) {
    ::freeaddrinfo(list);
  }
  return numeric;
}

/// Whether a host of this name is known. A name server may take its time, and a call to it cannot
/// be stopped: a thread asks, and is left behind.
std::future<bool> ask_for(const std::string& name) {
  auto answer = std::make_shared<std::promise<bool>>();
  auto known = answer->get_future();
  start_thread("a name's look-up", [answer, name] {
    answer->set_value(find_host(name).has_value());
  }).detach();
  return known;
}

std::optional<Resolved> find_here_or_there(const std::string& text) {
  auto found = text.empty() ? std::nullopt : find_interface(text);
  return found || text.empty() ? found : find_host(text);
}

/// True when a server of this machine can listen there.
bool is_ours(const Resolved& address) {
  const int probe = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound = ::bind(probe, reinterpret_cast<const sockaddr*>(&address.storage),
                            sizeof address.storage) == 0;
  ::close(probe);
  return bound;
}

}  // namespace

std::string Address::endpoint(std::string_view port) const {
  return fmt::format("tcp://{}{}{}:{}", ipv6 ? "[" : "", numeric, ipv6 ? "]" : "", port);
}

Address resolve_bind_address(std::string_view field, const std::string& text, const Reach& reach) {
  const auto found = find_here_or_there(std::string(without_brackets(text)));
  if (!found) {
    refuse(field, text, "it is no address, host name or network interface of this machine");
  }
  if (found->wildcard() && !reach.everywhere) {
    refuse(field, text,
           "peers need an address that they can reach: name one address or one interface");
  }
  if (!reach.beyond_loopback && !found->loopback()) {
    refuse(
        field, text,
        "it lies beyond loopback, and nothing is encrypted without keys. Bind 127.0.0.1, use the "
        "transport zmq with " +
            mention("key") + " and " + mention("peers") + ", or allow plain text with " +
            mention("insecure", "true"));
  }
  if (!is_ours(*found)) {
    refuse(field, text, "this machine does not have this address");
  }
  return {found->numeric(), found->ipv6()};
}

std::string interface_of(const Address& address) {
  const auto list = list_interfaces();
  for (const ifaddrs* one = list.get(); one != nullptr; one = one->ifa_next) {
    const auto* at = one->ifa_addr;
    if (at != nullptr && (at->sa_family == AF_INET || at->sa_family == AF_INET6) &&
        copy_of(at).numeric() == address.numeric) {
      return one->ifa_name;
    }
  }
  return "";
}

Address resolve_host(std::string_view field, const std::string& text) {
  const auto found = text.empty() ? std::nullopt : find_host(std::string(without_brackets(text)));
  if (!found) {
    refuse(field, text, "no host of this name is known");
  }
  return {found->numeric(), found->ipv6()};
}

std::vector<Address> resolve_all(const std::string& text) {
  std::vector<Address> all;
  for (const Resolved& one : find_hosts(std::string(without_brackets(text)))) {
    all.push_back({one.numeric(), one.ipv6()});
  }
  return all;
}

bool await_name(std::string_view field, const std::string& given, Deadline deadline) {
  const std::string text(without_brackets(given));
  if (text.empty() || find_interface(text) || is_numeric(text)) {
    return true;
  }
  while (!deadline.expired()) {
    const auto next = Deadline::Clock::now() + kNamePause;
    auto known = ask_for(text);
    bool answered = false;
    while (!answered && !deadline.expired()) {
      answered = known.wait_until(deadline.next_look()) == std::future_status::ready;
    }
    if (answered && known.get()) {
      return true;
    }
    sleep_until(deadline.or_at(next));
  }
  if (deadline.stopped()) {
    throw Stopped(
        fmt::format("{}: stopped while waiting for the name '{}' to be known", field, text));
  }
  return false;
}

}  // namespace sotto::internal

#include <sotto/comm/sealed_datagrams.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>
#include <sotto/comm/trust/sealed_message.h>

#include "internal/address/address.h"
#include "internal/address/host_port.h"
#include "internal/address/tcp.h"

namespace sotto {
namespace {

using internal::Address;
using internal::HostPort;

constexpr std::size_t kLongestDatagram = 2048;  // a datagram
/// A name is asked for again after so long: a cluster's names move.
constexpr std::chrono::seconds kAskNameAgain{30};
/// Free ports of UDP that are tried until one is free for TCP, too.
constexpr int kMostPortsTried = 32;
constexpr std::size_t kMostNamesKept = 64;
/// Datagrams that do not open and are dropped in one call whose deadline is over.
constexpr int kMostDropped = 64;

HostPort datagram_host(std::string_view field, const std::string& text) {
  // Port 0 is no address of a peer, and means any here.
  const bool any = text.ends_with(":0");
  auto parsed = internal::parse_host_port(any ? text.substr(0, text.size() - 1) + "1" : text);
  if (!parsed) {
    refuse(field, text, "an address is HOST:PORT");
  }
  if (any) {
    parsed->port = 0;
  }
  return *parsed;
}

/// A socket of this kind, bound at the endpoint; none: the system refuses (errno).
FileDescriptor bound_socket(const std::string& endpoint, int kind) {
  const auto address = internal::numeric_address(endpoint);
  if (address == nullptr) {
    errno = EINVAL;
    return {};
  }
  FileDescriptor socket(::socket(address->ai_family, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return {};
  }
  const int on = 1;
  if (kind == SOCK_STREAM) {
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  if (::bind(socket.get(), address->ai_addr, address->ai_addrlen) != 0) {
    return {};
  }
  return socket;
}

std::string address_text(const sockaddr_storage& storage) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET6) {
    sockaddr_in6 address{};
    std::memcpy(&address, &storage, sizeof address);
    (void)::inet_ntop(AF_INET6, &address.sin6_addr, text.data(), text.size());
    return fmt::format("[{}]:{}", text.data(), ntohs(address.sin6_port));
  }
  sockaddr_in address{};
  std::memcpy(&address, &storage, sizeof address);
  (void)::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return fmt::format("{}:{}", text.data(), ntohs(address.sin_port));
}

std::string own_address(const FileDescriptor& socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  check(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &length) == 0,
        "a bound socket has an address");
  return address_text(storage);
}

/// A socket for datagrams at the address, whose port is free for connections, too.
FileDescriptor bound_both(const Address& address, int port) {
  for (int tries = 0; tries < (port == 0 ? kMostPortsTried : 1); ++tries) {
    FileDescriptor datagrams =
        bound_socket(address.endpoint(port == 0 ? "*" : fmt::to_string(port)), SOCK_DGRAM);
    if (!datagrams) {
      return {};
    }
    if (bound_socket("tcp://" + own_address(datagrams), SOCK_STREAM)) {
      return datagrams;
    }
  }
  return {};
}

/// The address from which this machine reaches the endpoint; none where it does not.
std::optional<Address> route_to(const std::string& endpoint) {
  const auto to = internal::numeric_address(endpoint);
  if (to == nullptr) {
    return std::nullopt;
  }
  const FileDescriptor probe(::socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe || ::connect(probe.get(), to->ai_addr, to->ai_addrlen) != 0) {
    return std::nullopt;
  }
  const auto own = internal::parse_host_port(own_address(probe));
  return own ? std::optional(
                   Address{.numeric = own->host, .ipv6 = own->host.find(':') != std::string::npos})
             : std::nullopt;
}

bool is_loopback(const std::string& numeric) {
  return numeric.starts_with("127.") || numeric == "::1";
}

bool is_loopback_endpoint(const std::string& endpoint) {
  return endpoint.starts_with("tcp://127.") || endpoint.starts_with("tcp://[::1]");
}

/// Whether this machine has the endpoint's address.
bool is_of_this_machine(const std::string& endpoint) {
  const auto place = internal::parse_host_port(endpoint.substr(std::string("tcp://").size()));
  return place && !internal::interface_of(
                       {.numeric = place->host, .ipv6 = place->host.find(':') != std::string::npos})
                       .empty();
}

bool means_loopback(const std::string& host) { return host == "localhost" || is_loopback(host); }

/// What the seeds say of where this node may listen.
struct SeedPlaces {
  std::vector<std::pair<Address, int>> seats;  ///< addresses of seeds, which may be this machine's
  std::optional<Address> route;                ///< from which this machine reaches a seed
  /// The port of a seed whose name is this machine's own: such a name often stands for loopback
  /// (Debian's 127.0.1.1), where no other machine finds it.
  std::optional<int> own_port;
};

/// An address of this machine by its own name, which is none that stands for loopback; none: the
/// name stands for no other.
std::optional<Address> address_by_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) {
    return std::nullopt;
  }
  for (const Address& address : internal::resolve_all(name.data())) {
    if (!is_loopback(address.numeric) && is_of_this_machine(address.endpoint("1"))) {
      return address;
    }
  }
  return std::nullopt;
}

/// The address from which this machine reaches HOST:PORT, which may be a name, or that by which
/// others reach it anyway where this is kAnywhere or a name of its own; none where there is no such
/// address.
std::optional<Address> route_towards(const HostPort& place) {
  const HostPort anywhere = *internal::parse_host_port(kAnywhere);
  if (place.host == anywhere.host) {
    const auto named = address_by_name();
    return named ? named
                 : route_to(Address{.numeric = anywhere.host, .ipv6 = false}.endpoint(
                       fmt::to_string(anywhere.port)));
  }
  for (const Address& address : internal::resolve_all(place.host)) {
    if (is_loopback(address.numeric) && !means_loopback(place.host)) {
      return route_towards(anywhere);
    }
    if (auto route = route_to(address.endpoint(fmt::to_string(place.port)))) {
      return route;
    }
  }
  return std::nullopt;
}

SeedPlaces places_of(const DatagramPlace& place) {
  const std::vector<std::string>& seeds = place.seeds;
  SeedPlaces places;
  for (const std::string& seed : seeds) {
    const HostPort wanted = datagram_host("seeds", seed);
    const bool loopback = means_loopback(wanted.host);
    bool ipv4 = false;
    for (const Address& address : internal::resolve_all(wanted.host)) {
      ipv4 = ipv4 || !address.ipv6;
      if (is_loopback(address.numeric) && !loopback) {
        places.own_port = wanted.port;
        continue;
      }
      if (loopback && address.ipv6 && ipv4) {
        continue;  // one place, by its second name
      }
      places.seats.emplace_back(address, wanted.port);
      if (!places.route) {
        places.route = route_to(address.endpoint(fmt::to_string(wanted.port)));
      }
    }
  }
  if (seeds.empty()) {
    std::optional<Address> towards;
    if (!place.towards.empty()) {
      const HostPort host = datagram_host("seeds", place.towards);
      if (internal::await_name("seeds", host.host, Deadline::after(place.known_within))) {
        towards = route_towards(host);
      }
    }
    places.route = towards.value_or(Address{.numeric = "127.0.0.1", .ipv6 = false});
  } else if (!places.route) {
    refuse("seeds", seeds.front(),
           "no seed has an address here that other machines reach: where the names are right, say "
           "where this node is reached (listen)");
  }
  return places;
}

FileDescriptor bind_at(const DatagramPlace& place) {
  const internal::Reach reach{.beyond_loopback = place.beyond_loopback, .everywhere = false};
  if (!place.listen.empty()) {
    const HostPort wanted = datagram_host("listen", place.listen);
    FileDescriptor socket =
        bound_both(internal::resolve_bind_address("listen", wanted.host, reach), wanted.port);
    if (!socket) {
      refuse("listen", place.listen, std::string(std::strerror(errno)));
    }
    return socket;
  }
  const SeedPlaces places = places_of(place);
  for (const auto& [address, port] : places.seats) {
    if (FileDescriptor socket = bound_both(address, port)) {
      (void)internal::resolve_bind_address("seeds", address.numeric, reach);
      return socket;
    }
  }
  const Address own = internal::resolve_bind_address("listen", places.route->numeric, reach);
  FileDescriptor socket = bound_both(own, places.own_port.value_or(0));
  if (!socket && places.own_port) {
    socket = bound_both(own, 0);
  }
  if (!socket) {
    refuse("listen", places.route->numeric, std::string(std::strerror(errno)));
  }
  return socket;
}

}  // namespace

/// What a name stands for, as a thread has found out.
struct SealedDatagrams::Name {
  Deadline::Clock::time_point asked{};
  std::mutex mutex;
  std::vector<std::string>
      endpoints;  ///< what it stands for, guarded by the mutex; none: not known
};

SealedDatagrams::SealedDatagrams(const DatagramPlace& place, PrivateKey key)
    : key_(std::move(key)), socket_(bind_at(place)), address_(own_address(socket_)) {}

SealedDatagrams::~SealedDatagrams() = default;

std::vector<std::string> SealedDatagrams::endpoints_of(const std::string& to) {
  const auto parsed = internal::parse_host_port(to);
  if (!parsed) {
    return {};
  }
  const Address as_numbers{.numeric = parsed->host,
                           .ipv6 = parsed->host.find(':') != std::string::npos};
  const std::string port = fmt::to_string(parsed->port);
  if (internal::numeric_address(as_numbers.endpoint(port)) != nullptr) {
    return {as_numbers.endpoint(port)};
  }
  auto& name = names_[to];
  if (name == nullptr) {
    if (names_.size() > kMostNamesKept) {
      names_.erase(to);
      return {};
    }
    name = std::make_shared<Name>();
  }
  const auto now = Deadline::Clock::now();
  if (now - name->asked >= kAskNameAgain) {
    name->asked = now;
    try {
      start_thread("a name's look-up", [name = name, host = parsed->host, port] {
        std::vector<std::string> endpoints;
        for (const Address& address : internal::resolve_all(host)) {
          endpoints.push_back(address.endpoint(port));
        }
        const std::lock_guard lock(name->mutex);
        name->endpoints = std::move(endpoints);
      }).detach();
    } catch (const Shortage&) {
      return {};  // for now
    }
  }
  const std::lock_guard lock(name->mutex);
  return name->endpoints;
}

std::optional<std::vector<std::string>> SealedDatagrams::shared_with(const std::string& to) {
  const std::string own = endpoints_of(address_).at(0);
  std::vector<std::string> others = endpoints_of(to);
  const auto host = internal::parse_host_port(to);
  if (!host || others.empty()) {
    return std::nullopt;
  }
  const auto port_of = [](const std::string& text) { return text.substr(text.rfind(':')); };
  // Loopback has many addresses, and each may be another process's; by a machine's own name it is
  // this machine, for one that is not at another loopback address itself.
  const bool by_loopback = !means_loopback(host->host) && !is_loopback_endpoint(own) &&
                           port_of(to) == port_of(own) &&
                           std::ranges::any_of(others, is_loopback_endpoint);
  const bool among_them = std::erase(others, own) > 0;
  if (!among_them && !by_loopback) {
    return std::nullopt;
  }
  std::erase_if(others, [](const std::string& endpoint) {
    return is_loopback_endpoint(endpoint) || is_of_this_machine(endpoint);
  });
  return others;
}

bool SealedDatagrams::is_at(const std::string& to) {
  const auto others = shared_with(to);
  return others && std::ranges::all_of(*others, [own = endpoints_of(address_).at(0)](
                                                    const auto& other) { return own < other; });
}

bool SealedDatagrams::is_alone_at(const std::string& to) {
  const auto others = shared_with(to);
  return others && others->empty();
}

void SealedDatagrams::send(const std::string& to, std::span<const std::byte> message) {
  const std::vector<std::string> endpoints = endpoints_of(to);
  if (endpoints.empty() || message.size() + kSealBytes > kLongestDatagram) {
    return;
  }
  const std::vector<std::byte> sealed = seal_message(message, key_);
  for (const std::string& endpoint : endpoints) {
    const auto address = internal::numeric_address(endpoint);
    (void)::sendto(socket_.get(), sealed.data(), sealed.size(), MSG_NOSIGNAL, address->ai_addr,
                   address->ai_addrlen);
  }
}

std::optional<ReceivedDatagram> SealedDatagrams::receive(Deadline deadline) {
  std::array<std::byte, kLongestDatagram> sealed{};
  int dropped = 0;
  do {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const auto got = ::recvfrom(socket_.get(), sealed.data(), sealed.size(), MSG_TRUNC,
                                reinterpret_cast<sockaddr*>(&from), &length);
    if (got < 0) {
      continue;
    }
    const auto size = static_cast<std::size_t>(got);
    if (size <= sealed.size()) {
      if (auto message = open_message(std::span(sealed).first(size), key_)) {
        return ReceivedDatagram{.from = address_text(from), .message = std::move(*message)};
      }
    }
    ++refused_;
    ++dropped;
  } while ((dropped < kMostDropped || !deadline.expired()) &&
           internal::await_ready(socket_.get(), POLLIN, deadline));
  return std::nullopt;
}

}  // namespace sotto

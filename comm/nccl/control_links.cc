#include "control_links.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/bytes.h>
#include <sotto/base/enum_reader.h>

#include "../internal/address/tcp.h"
#include "../internal/backends.h"
#include "../internal/fault_text.h"
#include "../internal/ledger.h"
#include "../internal/meeting/rendezvous.h"
#include "../internal/meeting/start_number.h"
#include "../internal/neighbours.h"

namespace sotto::internal {
namespace {

constexpr std::uint64_t kGreeting = 0x32434C4F54544F53;  // "SOTTOLC2"
constexpr std::size_t kHelloBytes = 3 * sizeof(std::uint64_t) + sizeof(Rank);
constexpr std::size_t kMostEndpointBytes = 100;
/// The longest time in which a connection may prove its owner.
constexpr std::chrono::seconds kHelloTime{1};

/// A node's entry in the store for a neighbour.
struct LinkAddress {
  std::string endpoint;
  std::uint64_t token = 0;
  std::uint64_t frame_bytes = 0;
};

std::vector<std::byte> pack_card(const LinkAddress& card) {
  ByteBuffer out;
  out.write_string(card.endpoint);
  out.write(card.token);
  out.write(card.frame_bytes);
  return std::move(out).take();
}

std::optional<LinkAddress> unpack_card(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  LinkAddress card;
  card.endpoint = in.read_string(kMostEndpointBytes);
  card.token = in.read<std::uint64_t>();
  card.frame_bytes = in.read<std::uint64_t>();
  return in.finished() ? std::optional(std::move(card)) : std::nullopt;
}

/// A host that is gone without a word is noticed in half a minute.
void set_options(int socket) {
  constexpr int kOn = 1;
  constexpr int kIdleSeconds = 10;
  constexpr int kBetweenSeconds = 5;
  constexpr int kProbes = 4;
  const auto set = [&](int level, int name, int value) {
    (void)::setsockopt(socket, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, kOn);
  set(SOL_SOCKET, SO_KEEPALIVE, kOn);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kBetweenSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

/// True when all of `bytes` came by the deadline.
bool receive_all(int socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR) ||
               !await_ready(socket, POLLIN, deadline)) {
      return false;
    }
  }
  return true;
}

/// True when all of `bytes` went out; they are few, and the socket is new.
bool send_all(int socket, std::span<const std::byte> bytes) {
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

Status control_fault(std::string_view doing) {
  return {Fault::io, fmt::format("control connections, {}: {}", doing, std::strerror(errno))};
}

/// The notice in these bytes; nothing for bytes that are none.
std::optional<Notice> parse_notice(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  using Kind = Notice::Kind;
  const auto kind = read_enum<Kind, std::uint32_t>(in, Kind::leaving, Kind::frame);
  Notice notice{.kind = kind.value_or(Kind::leaving)};
  notice.cause = in.read<Rank>();
  notice.counts.sent = in.read<std::uint64_t>();
  notice.counts.received = in.read<std::uint64_t>();
  notice.bytes = in.read<std::uint64_t>();
  return in.finished() && kind ? std::optional(notice) : std::nullopt;
}

}  // namespace

ControlLinks::ControlLinks(const TransportOptions& options) : options_(options) {}

Status ControlLinks::connect(const Address& address, Deadline deadline) {
  if (auto status = listen(address); !status.ok()) {
    return status;
  }
  Addresses mine;
  for (const Rank peer : neighbours(options_)) {
    tokens_[peer] = draw_start_number(options_.rank);
    mine[peer] = pack_card({endpoint_, tokens_[peer], options_.max_frame_bytes});
  }
  const auto theirs = meet(options_, "nccl", mine, deadline);
  if (!theirs) {
    return theirs.status();
  }
  std::map<Rank, LinkAddress> cards;
  for (const auto& [peer, bytes] : *theirs) {
    auto card = unpack_card(bytes);
    if (!card) {
      return {Fault::malformed, fmt::format("node {} gave no address of this transport", peer)};
    }
    links_[peer].message_bytes = std::max<std::size_t>(options_.max_frame_bytes, card->frame_bytes);
    cards[peer] = std::move(*card);
  }
  // The higher rank dials. A connection stands before it is accepted, so nobody waits in a circle.
  for (const auto& [peer, card] : cards) {
    if (peer < options_.rank) {
      if (auto status = dial(peer, card.endpoint, card.token, deadline); !status.ok()) {
        return status;
      }
    }
  }
  return accept_all(deadline);
}

Status ControlLinks::listen(const Address& address) {
  const auto where = numeric_address(address.endpoint("*"));
  if (where == nullptr) {
    return {Fault::io, fmt::format("control connections: {} is no address", address.numeric)};
  }
  listener_ = FileDescriptor(
      ::socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (!listener_ || ::bind(listener_.get(), where->ai_addr, where->ai_addrlen) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return control_fault("listening at " + address.numeric);
  }
  in_port_t port = 0;
  if (bound.ss_family == AF_INET6) {
    sockaddr_in6 at{};
    std::memcpy(&at, &bound, sizeof at);
    port = at.sin6_port;
  } else {
    sockaddr_in at{};
    std::memcpy(&at, &bound, sizeof at);
    port = at.sin_port;
  }
  endpoint_ = address.endpoint(fmt::to_string(ntohs(port)));
  return {};
}

Status ControlLinks::dial(Rank peer, const std::string& endpoint, std::uint64_t token,
                          Deadline deadline) {
  FileDescriptor socket = connect_by(endpoint, deadline);
  if (!socket) {
    return {deadline.fault(), fmt::format("node {} took no connection at {}", peer, endpoint)};
  }
  ByteBuffer hello;
  hello.write(kGreeting);
  hello.write(options_.run_id);
  hello.write(token);
  hello.write(options_.rank);
  if (!send_all(socket.get(), hello.bytes())) {
    return control_fault(fmt::format("greeting node {}", peer));
  }
  keep(peer, std::move(socket));
  return {};
}

Status ControlLinks::accept_all(Deadline deadline) {
  const auto missing = [&] {
    std::vector<Rank> peers;
    for (const auto& [peer, link] : links_) {
      if (!link.socket) {
        peers.push_back(peer);
      }
    }
    return peers;
  };
  while (!missing().empty()) {
    if (!await_ready(listener_.get(), POLLIN, deadline)) {
      return not_come(missing(), deadline);
    }
    FileDescriptor socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      admit(std::move(socket), deadline.or_after(kHelloTime));
    }
  }
  listener_.close();
  return {};
}

void ControlLinks::admit(FileDescriptor socket, Deadline deadline) {
  std::array<std::byte, kHelloBytes> hello{};
  if (receive_all(socket.get(), hello, deadline)) {
    ByteReader in(hello);
    const bool ours = in.read<std::uint64_t>() == kGreeting;
    const bool run = in.read<std::uint64_t>() == options_.run_id;
    const auto token = in.read<std::uint64_t>();
    const auto peer = in.read<Rank>();
    const auto link = links_.find(peer);
    if (ours && run && link != links_.end() && !link->second.socket && tokens_.at(peer) == token) {
      keep(peer, std::move(socket));
    }
  }
}

void ControlLinks::keep(Rank peer, FileDescriptor socket) {
  set_options(socket.get());
  links_.at(peer).socket = std::move(socket);
}

std::vector<News> ControlLinks::wait(Deadline::Clock::duration at_most) {
  std::vector<pollfd> items = {{wakeup_.descriptor(), POLLIN, 0}};
  std::vector<Rank> peers;
  items.reserve(links_.size() + 1);
  peers.reserve(links_.size());
  for (const auto& [peer, link] : links_) {
    if (link.socket) {
      items.push_back({link.socket.get(), POLLIN, 0});
      peers.push_back(peer);
    }
  }
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(at_most).count();
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec limit{nanoseconds / kSecond, nanoseconds % kSecond};
  std::vector<News> news;
  if (::ppoll(items.data(), items.size(), &limit, nullptr) <= 0) {
    return news;
  }
  if (items[0].revents != 0) {
    wakeup_.clear();
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (items[i + 1].revents != 0) {
      read(peers[i], links_.at(peers[i]), news);
    }
  }
  return news;
}

void ControlLinks::read(Rank peer, Link& link, std::vector<News>& news) {
  for (;;) {
    const auto room = std::span(link.begun).subspan(link.have);
    const auto got = ::recv(link.socket.get(), room.data(), room.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    }
    if (got <= 0) {
      const char* why = got < 0 ? std::strerror(errno) : "its process ended";
      news.push_back({peer, std::nullopt, link.stuck ? "it takes no notices any more" : why});
      link.socket.close();
      return;
    }
    link.have += static_cast<std::size_t>(got);
    if (link.have < kNoticeBytes) {
      continue;
    }
    link.have = 0;
    auto notice = parse_notice(link.begun);
    if (!notice) {
      news.push_back({peer, std::nullopt, "it sent a notice that is none"});
      link.socket.close();
      return;
    }
    news.push_back({peer, notice, ""});
  }
}

void ControlLinks::wake() { wakeup_.signal(); }

void ControlLinks::tell(Rank peer, const Notice& notice) {
  Link& link = links_.at(peer);
  if (!link.socket) {
    return;
  }
  std::array<std::byte, kNoticeBytes> bytes{};
  ByteWriter out(bytes);
  out.write(static_cast<std::uint32_t>(notice.kind));
  out.write(notice.cause);
  out.write(notice.counts.sent);
  out.write(notice.counts.received);
  out.write(notice.bytes);
  const auto sent = ::send(link.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  // A connection that has ended shows when it is read.
  if (sent < 0 ? errno == EAGAIN : static_cast<std::size_t>(sent) < bytes.size()) {
    // Half a notice, or none, would leave the peer waiting.
    link.stuck = true;
    (void)::shutdown(link.socket.get(), SHUT_RDWR);
  }
}

}  // namespace sotto::internal

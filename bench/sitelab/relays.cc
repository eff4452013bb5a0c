#include "relays.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include <sotto/base/start_threads.h>

#include "bench/support/loopback.h"

namespace sotto::sitelab {
namespace {

/// What a flow takes at once, and what it holds before its sender waits: so much of the link's
/// time, within bounds, as a slow link delivers little by little and others get through between.
constexpr double kPieceSeconds = 0.05;
constexpr double kHeldSeconds = 0.5;
constexpr std::size_t kSmallestPiece = 256;
constexpr std::size_t kPiece = std::size_t{16} << 10;
constexpr std::size_t kMostHeld = std::size_t{128} << 10;

std::size_t bytes_in(double seconds, const LinkSpec& link, std::size_t most) {
  return static_cast<std::size_t>(std::clamp(
      seconds * link.bytes_per_s, static_cast<double>(kSmallestPiece), static_cast<double>(most)));
}

using bench::loopback;

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

void set(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

/// A connection to a port that does not make the caller wait; on loopback that is decided at once.
FileDescriptor connect_to(int port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in address = loopback(port);
  const bool fine =
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno == EINPROGRESS;
  return fine ? std::move(socket) : FileDescriptor();
}

}  // namespace

Relays::Relays(int sites, const LinkSpec& link)
    : sites_(static_cast<std::size_t>(sites)),
      link_(link),
      ways_(sites_ * sites_),
      ports_(sites_),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!bell_) {
    fail("no event descriptor is to be had");
  }
  thread_ = start_thread("the ways", [this] { relay(); });
}

Relays::~Relays() {
  stop_ = true;
  wake();
  thread_.join();
}

void Relays::wake() {
  const std::uint64_t one = 1;
  // A bell that has been rung too often to take more is rung.
  [[maybe_unused]] const auto written = ::write(bell_.get(), &one, sizeof one);
}

int Relays::open(Rank from, Rank to) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find_if(entrances_, [&](const Entrance& entrance) {
    return entrance.from == from && entrance.to == to;
  });
  if (known != entrances_.end()) {
    return known->port;
  }
  auto [socket, port] = bench::hold_port();
  if (::listen(socket.get(), 64) != 0) {
    fail("a relay cannot listen");
  }
  entrances_.push_back({.listener = std::move(socket), .port = port, .from = from, .to = to});
  wake();
  return port;
}

void Relays::lead_to(Rank site, int port) {
  const std::lock_guard lock(mutex_);
  ports_[static_cast<std::size_t>(site)] = port;
}

void Relays::block(Rank from, Rank to) {
  const std::lock_guard lock(mutex_);
  ++way(from, to).blocked;
  wake();
}

void Relays::unblock(Rank from, Rank to) {
  const std::lock_guard lock(mutex_);
  --way(from, to).blocked;
  wake();
}

void Relays::set_link(Rank from, Rank to, std::optional<LinkSpec> link) {
  const std::lock_guard lock(mutex_);
  way(from, to).changed = std::move(link);
  way(from, to).free = {};
  wake();
}

bool Relays::reset(Rank a, Rank b, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bool any = false;
  for (const auto& connection : connections_) {
    const bool between = (connection->from == a && connection->to == b) ||
                         (connection->from == b && connection->to == a);
    if (between && !connection->over) {
      any = true;
      connection->bytes_left = bytes;
      connection->over = connection->broken = bytes == 0;
    }
  }
  wake();
  return any;
}

bool Relays::open_both_ways(Rank a, Rank b) const {
  const std::lock_guard lock(mutex_);
  return way(a, b).blocked == 0 && way(b, a).blocked == 0;
}

bool Relays::slowed(Rank a, Rank b) const {
  const std::lock_guard lock(mutex_);
  return way(a, b).changed || way(b, a).changed;
}

// The thread that relays.

void Relays::accept_at(const Entrance& entrance) {
  FileDescriptor client(
      ::accept4(entrance.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!client) {
    return;
  }
  FileDescriptor server = connect_to(ports_[static_cast<std::size_t>(entrance.to)]);
  auto connection = std::make_unique<Connection>();
  connection->from = entrance.from;
  connection->to = entrance.to;
  connection->over = !server;
  set(client.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  set(server.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  connection->ends[0] = std::move(client);
  connection->ends[1] = std::move(server);
  connections_.push_back(std::move(connection));
}

/// Both ends hear of it at once, and what is under way is gone.
void Relays::break_off(const Connection& connection) {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  for (const FileDescriptor& end : connection.ends) {
    if (end) {
      ::setsockopt(end.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
  }
}

void Relays::take(Connection& connection, std::size_t flow) {
  Flow& on = connection.flows[flow];
  Way& along = way_of(connection, flow);
  const LinkSpec& link = link_of(along);
  std::vector<char> bytes(bytes_in(kPieceSeconds, link, kPiece));
  const auto got = ::recv(connection.ends[flow].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (got <= 0) {
    on.ended = true;
    return;
  }
  if (on.lost) {
    return;
  }
  bytes.resize(static_cast<std::size_t>(got));
  on.held += bytes.size();
  const auto now = Clock::now();
  const double seconds = static_cast<double>(got) / link.bytes_per_s;
  along.free = std::max(along.free, now) +
               std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(seconds, 1e6) * 1e9));
  on.pieces.push_back(
      {.due = along.free + std::chrono::nanoseconds(link.latency), .bytes = std::move(bytes)});
}

void Relays::give(Connection& connection, std::size_t flow, Clock::time_point now) {
  Flow& on = connection.flows[flow];
  while (!on.pieces.empty() && on.pieces.front().due <= now) {
    Piece& piece = on.pieces.front();
    std::size_t wanted = piece.bytes.size() - piece.gone;
    if (connection.bytes_left) {
      wanted = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, *connection.bytes_left));
    }
    const auto put = on.lost
                         ? static_cast<ssize_t>(wanted)
                         : ::send(connection.ends[1 - flow].get(), piece.bytes.data() + piece.gone,
                                  wanted, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN)) {
      return;
    }
    if (put < 0) {
      on.lost = true;  // whoever sends learns of it by what comes the other way
      continue;
    }
    piece.gone += static_cast<std::size_t>(put);
    on.held -= static_cast<std::size_t>(put);
    if (connection.bytes_left) {
      *connection.bytes_left -= static_cast<std::uint64_t>(put);
      if (*connection.bytes_left == 0) {
        connection.over = connection.broken = true;
        return;
      }
    }
    if (piece.gone == piece.bytes.size()) {
      on.pieces.pop_front();
    }
  }
  if (on.ended && on.pieces.empty()) {
    connection.over = true;
  }
}

Relays::Clock::time_point Relays::next_due(Clock::time_point now) const {
  auto next = now + std::chrono::seconds(1);
  for (const auto& connection : connections_) {
    for (std::size_t flow = 0; flow < 2; ++flow) {
      const auto& pieces = connection->flows[flow].pieces;
      // What is due already waits for its receiver, not for time to pass.
      if (!pieces.empty() && pieces.front().due > now && way_of(*connection, flow).blocked == 0) {
        next = std::min(next, pieces.front().due);
      }
    }
  }
  return next;
}

pollfd Relays::wanted(const Connection& connection, std::size_t end, Clock::time_point now) const {
  const Flow& from = connection.flows[end];
  const Flow& to = connection.flows[1 - end];
  const Way& along = way_of(connection, end);
  const bool takes = along.blocked == 0 && !from.ended &&
                     from.held < bytes_in(kHeldSeconds, link_of(along), kMostHeld);
  const bool gives = way_of(connection, 1 - end).blocked == 0 && !to.pieces.empty() &&
                     to.pieces.front().due <= now;
  const auto events = static_cast<short>((takes ? POLLIN : 0) | (gives ? POLLOUT : 0));
  return {.fd = events == 0 ? -1 : connection.ends[end].get(), .events = events, .revents = 0};
}

std::vector<pollfd> Relays::wanted(Clock::time_point now) const {
  std::vector<pollfd> fds = {{.fd = bell_.get(), .events = POLLIN, .revents = 0}};
  fds.reserve(1 + entrances_.size() + 2 * connections_.size());
  for (const Entrance& entrance : entrances_) {
    const bool shut =
        way(entrance.from, entrance.to).blocked > 0 || way(entrance.to, entrance.from).blocked > 0;
    fds.push_back({.fd = shut ? -1 : entrance.listener.get(), .events = POLLIN, .revents = 0});
  }
  for (const auto& connection : connections_) {
    fds.push_back(wanted(*connection, 0, now));
    fds.push_back(wanted(*connection, 1, now));
  }
  return fds;
}

void Relays::move_on(std::span<const pollfd> ends) {
  const auto now = Clock::now();
  for (std::size_t k = 0; 2 * k < ends.size(); ++k) {
    Connection& connection = *connections_[k];
    for (std::size_t end = 0; end < 2; ++end) {
      const pollfd& seen = ends[2 * k + end];
      if ((seen.events & POLLIN) != 0 && seen.revents != 0) {
        take(connection, end);
      }
    }
    for (std::size_t flow = 0; flow < 2 && !connection.over; ++flow) {
      if (way_of(connection, flow).blocked == 0) {
        give(connection, flow, now);
      }
    }
  }
}

void Relays::relay() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto now = Clock::now();
    std::vector<pollfd> fds = wanted(now);
    const std::size_t entrances = entrances_.size();
    const auto wait = next_due(now) - now;
    lock.unlock();
    const auto whole = std::chrono::floor<std::chrono::seconds>(wait);
    const timespec limit = {.tv_sec = whole.count(), .tv_nsec = (wait - whole).count()};
    ::ppoll(fds.data(), fds.size(), &limit, nullptr);
    lock.lock();
    std::uint64_t rung = 0;
    [[maybe_unused]] const auto heard = ::read(bell_.get(), &rung, sizeof rung);
    move_on(std::span(fds).subspan(1 + entrances));
    for (std::size_t k = 0; k < entrances; ++k) {
      if (fds[1 + k].revents != 0) {
        accept_at(entrances_[k]);
      }
    }
    std::erase_if(connections_, [](const auto& connection) {
      if (connection->broken) {
        break_off(*connection);
      }
      return connection->over;
    });
  }
}

}  // namespace sotto::sitelab

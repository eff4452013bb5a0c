// A network between clients and a server that a test can slow down, hold, deafen in one direction
// and cut; or on which an attacker sits, who keeps what clients say, and can change it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "support/free_port.h"

namespace sotto::test {

class BadLink {
 public:
  enum class Mode {
    pass,
    hold,  ///< nothing is lost, and nothing arrives
    lose,  ///< what is said disappears
  };

  explicit BadLink(int server_port)
      : server_port_(server_port),
        port_(free_port()),
        listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    const int on = 1;
    REQUIRE(::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    shrink(listener_);
    const auto address = loopback(port_);
    REQUIRE(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_, 64) == 0);
    thread_ = std::thread([this] { run(); });
  }
  ~BadLink() {
    stop_ = true;
    thread_.join();
    ::close(listener_);
  }
  BadLink(const BadLink&) = delete;
  BadLink& operator=(const BadLink&) = delete;

  int port() const { return port_; }
  void to_server(Mode mode) { modes_[0] = mode; }
  void to_client(Mode mode) { modes_[1] = mode; }
  void both(Mode mode) {
    to_server(mode);
    to_client(mode);
  }
  /// Bytes per second in each direction of each connection.
  void limit(std::size_t rate) { rate_ = rate; }
  /// Resets all connections, at once.
  void cut() { cut_ = true; }
  /// Resets every connection as soon as so many bytes have gone to the server; 0: never.
  void cut_after(std::uint64_t bytes) { cut_after_ = bytes; }
  /// Keeps what clients say from now on.
  void record() { record_ = true; }
  /// What the client of each connection has said, as far as it was kept.
  std::vector<std::vector<std::byte>> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  /// From now on one bit of all that a client says is flipped.
  void tamper() { tamper_ = true; }

 private:
  struct Way {
    int from;
    int to;
    std::vector<std::byte> waiting{};
    double credit = 0;
    std::uint64_t passed = 0;
    bool ended = false;  ///< whoever speaks has nothing more to say, and the other was told
  };
  struct Connection {
    std::array<Way, 2> ways;  ///< to the server, to the client
    std::size_t number;
  };

  /// Small buffers, which do not hide how slow the link is.
  static void shrink(int socket) {
    const int bytes = 16384;
    REQUIRE(::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0);
    REQUIRE(::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) == 0);
  }

  void accept_all() {
    for (;;) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (client < 0) {
        return;
      }
      const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      shrink(server);
      const auto address = loopback(server_port_);
      if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        ::close(server);
        ::close(client);
        continue;
      }
      const std::lock_guard lock(mutex_);
      connections_.push_back({{Way{client, server}, Way{server, client}}, heard_.size()});
      heard_.emplace_back();
    }
  }

  /// What a client has just said.
  void overhear(std::size_t connection, std::vector<std::byte>& bytes) {
    if (record_) {
      const std::lock_guard lock(mutex_);
      auto& heard = heard_[connection];
      heard.insert(heard.end(), bytes.begin(), bytes.end());
    }
    if (tamper_ && !bytes.empty()) {
      bytes[bytes.size() / 2] ^= std::byte{1};
    }
  }

  /// False when one side is gone. One that only says no more may still hear the other.
  bool copy(Connection& connection, std::size_t direction, double seconds) {
    Way& way = connection.ways[direction];
    const Mode mode = modes_[direction];
    constexpr std::size_t kMost = 16384;
    const auto rate = static_cast<double>(rate_.load());
    way.credit = rate > 0 ? std::min(way.credit + rate * seconds, rate / 10) : kMost;
    if (mode == Mode::hold || way.ended) {
      return true;
    }
    if (way.waiting.empty()) {
      way.waiting.resize(kMost);
      const auto got = ::recv(way.from, way.waiting.data(), kMost, MSG_DONTWAIT);
      way.waiting.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
      if (got == 0 && mode == Mode::pass) {
        way.ended = true;
        return ::shutdown(way.to, SHUT_WR) == 0;
      }
      if (got == 0 || (got < 0 && errno != EAGAIN)) {
        return false;
      }
      if (direction == 0) {
        overhear(connection.number, way.waiting);
      }
    }
    if (mode == Mode::lose) {
      way.waiting.clear();
      return true;
    }
    const auto most = std::min(way.waiting.size(), static_cast<std::size_t>(way.credit));
    const auto sent = ::send(way.to, way.waiting.data(), most, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      return errno == EAGAIN;
    }
    way.waiting.erase(way.waiting.begin(), way.waiting.begin() + sent);
    way.credit -= static_cast<double>(sent);
    way.passed += static_cast<std::uint64_t>(sent);
    return true;
  }

  void run() {
    auto last = std::chrono::steady_clock::now();
    while (!stop_) {
      const auto now = std::chrono::steady_clock::now();
      const double seconds = std::chrono::duration<double>(now - last).count();
      last = now;
      accept_all();
      const bool cut = cut_.exchange(false);
      std::erase_if(connections_, [&](Connection& connection) {
        const auto limit = cut_after_.load();
        const bool ended = cut || !copy(connection, 0, seconds) || !copy(connection, 1, seconds) ||
                           (connection.ways[0].ended && connection.ways[1].ended) ||
                           (limit > 0 && connection.ways[0].passed >= limit);
        if (ended) {
          end(connection);
        }
        return ended;
      });
      wait();
    }
    for (const Connection& connection : connections_) {
      end(connection);
    }
  }

  /// Until there may be something to do; a millisecond where that is not known.
  void wait() {
    std::vector<pollfd> items = {{listener_, POLLIN, 0}};
    bool busy = rate_ > 0;
    for (const Connection& connection : connections_) {
      for (std::size_t way = 0; way < 2; ++way) {
        busy = busy || !connection.ways[way].waiting.empty();
        const bool silent = modes_[way] == Mode::hold || connection.ways[way].ended;
        if (!silent && connection.ways[way].waiting.empty()) {
          items.push_back({connection.ways[way].from, POLLIN, 0});
        }
      }
    }
    (void)::poll(items.data(), busy ? 0 : items.size(), busy ? 2 : 10);
  }

  static void end(const Connection& connection) {
    const linger reset{1, 0};
    for (const Way& way : connection.ways) {
      (void)::setsockopt(way.from, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      ::close(way.from);
    }
  }

  const int server_port_;
  const int port_;
  const int listener_;
  std::array<std::atomic<Mode>, 2> modes_{Mode::pass, Mode::pass};
  std::atomic<std::size_t> rate_{0};
  std::atomic<bool> cut_{false};
  std::atomic<std::uint64_t> cut_after_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> record_{false};
  std::atomic<bool> tamper_{false};
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> heard_;
  std::vector<Connection> connections_;  ///< the thread's
  std::thread thread_;
};

}  // namespace sotto::test

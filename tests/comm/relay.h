// A wire between a client and a server that an attacker sits on: it copies bytes both ways, keeps
// what clients said, and can change it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "free_port.h"

namespace sotto::test {

class Relay {
 public:
  explicit Relay(int server_port)
      : server_port_(server_port), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener_, any, size) == 0);
    REQUIRE(::listen(listener_, 16) == 0);
    REQUIRE(::getsockname(listener_, any, &size) == 0);
    port_ = ntohs(address.sin_port);
    REQUIRE(::pipe(stop_) == 0);
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    ::close(stop_[1]);
    thread_.join();
    ::close(stop_[0]);
    ::close(listener_);
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const { return port_; }
  /// What the client of each connection has said so far.
  std::vector<std::vector<std::byte>> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  /// From now on one bit of all that a client says is flipped.
  void tamper() { tamper_ = true; }

 private:
  struct Pair {
    int client;
    int server;
    std::size_t number;
  };

  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }

  void accept_one() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = loopback(server_port_);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ::close(client);
      ::close(server);
      return;
    }
    const std::lock_guard lock(mutex_);
    pairs_.push_back({client, server, heard_.size()});
    heard_.emplace_back();
  }

  /// False when one side has ended.
  bool copy(const Pair& pair, int from, int to) {
    std::byte bytes[65536];
    const auto got = ::recv(from, bytes, sizeof bytes, 0);
    if (got <= 0) {
      return false;
    }
    const auto size = static_cast<std::size_t>(got);
    if (from == pair.client) {
      const std::lock_guard lock(mutex_);
      heard_[pair.number].insert(heard_[pair.number].end(), bytes, bytes + size);
      if (tamper_) {
        bytes[size / 2] ^= std::byte{1};
      }
    }
    for (std::size_t sent = 0; sent < size;) {
      const auto more = ::send(to, bytes + sent, size - sent, MSG_NOSIGNAL);
      if (more <= 0) {
        return false;
      }
      sent += static_cast<std::size_t>(more);
    }
    return true;
  }

  void run() {
    for (;;) {
      std::vector<pollfd> items = {{stop_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        items.push_back({pair.client, POLLIN, 0});
        items.push_back({pair.server, POLLIN, 0});
      }
      ::poll(items.data(), items.size(), -1);
      if (items[0].revents != 0) {
        break;
      }
      std::deque<Pair> left;
      for (std::size_t i = 0; i < pairs_.size(); ++i) {
        const Pair pair = pairs_[i];
        const bool open = (items[2 + 2 * i].revents == 0 || copy(pair, pair.client, pair.server)) &&
                          (items[3 + 2 * i].revents == 0 || copy(pair, pair.server, pair.client));
        if (open) {
          left.push_back(pair);
        } else {
          end(pair);
        }
      }
      pairs_ = left;
      if (items[1].revents != 0) {
        accept_one();
      }
    }
    for (const Pair& pair : pairs_) {
      end(pair);
    }
  }

  static void end(const Pair& pair) {
    ::close(pair.client);
    ::close(pair.server);
  }

  const int server_port_;
  int listener_;
  int port_ = 0;
  int stop_[2] = {-1, -1};
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> heard_;
  std::atomic<bool> tamper_{false};
  std::deque<Pair> pairs_;  ///< the thread's
  std::thread thread_;
};

}  // namespace sotto::test

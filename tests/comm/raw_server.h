// A TCP server made of bytes alone, on loopback, for servers that lie and stall.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/file_descriptor.h>

#include "support/free_port.h"

namespace sotto::test {

/// Serves each connection on a thread of its own.
class RawServer {
 public:
  /// Bytes of one client, in order. Each read waits for them, and is false once the client or the
  /// server has gone.
  class Client {
   public:
    Client(int socket, const std::atomic<bool>& over) : socket_(socket), over_(over) {}

    bool read(void* to, std::size_t count) const {
      auto* at = static_cast<char*>(to);
      while (count > 0) {
        pollfd item = {socket_.get(), POLLIN, 0};
        if (over_) {
          return false;
        }
        if (::poll(&item, 1, 20) <= 0) {
          continue;
        }
        const auto got = ::recv(socket_.get(), at, count, 0);
        if (got <= 0) {
          return false;
        }
        at += got;
        count -= static_cast<std::size_t>(got);
      }
      return true;
    }
    template <typename T>
    std::optional<T> number() const {
      T value{};
      return read(&value, sizeof value) ? std::optional(value) : std::nullopt;
    }
    /// A length and its bytes; none for one that no machine has the memory for, too.
    std::optional<std::string> run(std::uint64_t most = std::uint64_t{1} << 32U) const {
      const auto size = number<std::uint64_t>();
      if (!size || *size > most) {
        return std::nullopt;
      }
      std::string bytes(*size, '\0');
      return read(bytes.data(), bytes.size()) ? std::optional(std::move(bytes)) : std::nullopt;
    }
    void write(std::string_view bytes) const {
      while (!bytes.empty()) {
        const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
          return;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      }
    }
    template <typename T>
    void write_number(T value) const {
      write({reinterpret_cast<const char*>(&value), sizeof value});
    }
    void write_run(const std::string& bytes) const {
      write_number(std::uint64_t{bytes.size()});
      write(bytes);
    }
    /// Until the client or the server has gone.
    void wait() const {
      char dropped = 0;
      while (read(&dropped, 1)) {
      }
    }

   private:
    FileDescriptor socket_;
    const std::atomic<bool>& over_;
  };

  explicit RawServer(std::function<void(const Client&)> serve)
      : port_(free_port()),
        listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        serve_(std::move(serve)) {
    const int on = 1;
    auto address = loopback(port_);
    REQUIRE(::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_.get(), 64) == 0);
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~RawServer() {
    over_ = true;
    accepting_.join();
    for (std::thread& client : clients_) {
      client.join();
    }
  }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  int port() const { return port_; }

 private:
  void accept_all() {
    while (!over_) {
      pollfd item = {listener_.get(), POLLIN, 0};
      if (::poll(&item, 1, 20) > 0) {
        const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
        clients_.emplace_back([this, socket] { serve_(Client(socket, over_)); });
      }
    }
  }

  const int port_;
  FileDescriptor listener_;
  const std::function<void(const Client&)> serve_;
  std::atomic<bool> over_{false};
  std::thread accepting_;
  std::vector<std::thread> clients_;
};

}  // namespace sotto::test

// A TCPStore of PyTorch's made of bytes alone: each generation's requests, and what each does with
// a key that is not there and with a value that is too long. And servers that are none.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/bytes.h>
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

/// The generations of PyTorch's server.
enum class TorchServer {
  until_2_0,
  of_2_1,
  since_2_2,        ///< its older server (use_libuv=False)
  since_2_2_libuv,  ///< its newer one
};

class FakeTorchStore {
 public:
  explicit FakeTorchStore(TorchServer kind)
      : kind_(kind), server_([this](const RawServer::Client& client) { serve(client); }) {}

  int port() const { return server_.port(); }
  std::map<std::string, std::string> values() {
    const std::lock_guard lock(mutex_);
    return values_;
  }
  /// Closes the line at the request that comes after so many others, once.
  void close_after(int requests) { until_close_ = requests; }
  /// Puts a value where a client may read it.
  void put(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
  }

 private:
  using Client = RawServer::Client;
  static constexpr std::uint64_t kMostOfLibuv = std::uint64_t{8} << 20U;

  bool greets() const { return kind_ >= TorchServer::since_2_2; }

  void serve(const Client& client) {
    if (greets()) {
      const auto validate = client.number<std::uint8_t>();
      if (validate != 0 || client.number<std::uint32_t>() != 0x3C85F7CE) {
        return;
      }
    }
    while (const auto number = client.number<std::uint8_t>()) {
      if (until_close_ >= 0 && until_close_-- == 0) {
        return;
      }
      if (!answer(client, *number - (greets() ? 1 : 0))) {
        return;
      }
    }
  }
  bool answer(const Client& client, int request) {
    constexpr int kSet = 0;
    constexpr int kGet = 2;
    constexpr int kCheck = 4;
    constexpr int kCount = 6;
    const bool watches = kind_ == TorchServer::until_2_0;
    if (request == kSet) {
      const auto key = client.run();
      const bool libuv = kind_ == TorchServer::since_2_2_libuv;
      const auto value = key ? client.run(libuv ? kMostOfLibuv : ~std::uint64_t{0}) : std::nullopt;
      if (key && value) {
        put(*key, *value);
      }
      return key && value;
    }
    if (request == kCheck) {
      const auto count = client.number<std::uint64_t>();
      const auto key = client.run();
      if (count == 1 && key) {
        client.write_number(static_cast<std::uint8_t>(values().contains(*key) ? 0 : 1));
      }
      return count == 1 && key;
    }
    if (request == kCount) {
      client.write_number(static_cast<std::int64_t>(values().size()));
      return true;
    }
    if (request != kGet && request != 7 && !(watches && request == 8)) {
      return false;
    }
    const auto key = client.run();
    return key && answer_key(client, request, *key, watches);
  }
  bool answer_key(const Client& client, int request, const std::string& key, bool watches) {
    if (request == 2) {
      const auto all = values();
      const auto found = all.find(key);
      if (found == all.end() && kind_ != TorchServer::since_2_2_libuv) {
        return false;
      }
      client.write_run(found == all.end() ? std::string() : found->second);
    } else if (watches && request == 7) {
      client.write_number(std::uint8_t{3});
    } else {
      const std::lock_guard lock(mutex_);
      client.write_number(static_cast<std::int64_t>(values_.erase(key)));
    }
    return true;
  }

  const TorchServer kind_;
  std::atomic<int> until_close_{-1};  ///< below 0: it stays open
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  RawServer server_;  // the last: its threads use the others
};

}  // namespace sotto::test

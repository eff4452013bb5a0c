// A client of the zmq transport made of bytes alone, so that it can break every rule.
//
// Speaks ZMTP 3.0 with the NULL mechanism, as a DEALER (rfc.zeromq.org/spec/23).
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/exchange.h>
#include <sotto/comm/stores.h>

namespace sotto::test {

/// A TCP connection to "tcp://127.0.0.1:PORT".
class RawConnection {
 public:
  explicit RawConnection(std::string_view endpoint) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto port = std::stoi(std::string(endpoint.substr(endpoint.rfind(':') + 1)));
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawConnection() { close(); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  bool connected() const { return connected_; }
  /// What the other side makes of the bytes does not matter: it may have closed by now.
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) {
        return;
      }
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
  }
  void read(std::size_t count) {
    std::vector<std::byte> drop(count);
    REQUIRE(fill(drop));
  }
  /// False when the other side closes before all bytes have come.
  bool fill(std::span<std::byte> bytes) {
    return ::recv(socket_, bytes.data(), bytes.size(), MSG_WAITALL) ==
           static_cast<ssize_t>(bytes.size());
  }
  /// Reads until the other side has closed; how many bytes came.
  std::size_t read_to_end() {
    std::size_t total = 0;
    std::byte drop[4096];
    for (ssize_t got = 1; got > 0; total += got > 0 ? static_cast<std::size_t>(got) : 0) {
      got = ::recv(socket_, drop, sizeof drop, 0);
    }
    return total;
  }
  void close() {
    if (socket_ >= 0) {
      ::close(socket_);
      socket_ = -1;
    }
  }

 private:
  int socket_;
  bool connected_ = false;
};

class RawPeer {
 public:
  explicit RawPeer(std::string_view endpoint) : connection_(endpoint) {
    REQUIRE(connection_.connected());
    ByteBuffer greeting;
    greeting.write(std::uint8_t{0xFF});
    greeting.write(std::uint64_t{0});
    greeting.write(std::uint8_t{0x7F});
    greeting.write(std::uint8_t{3});
    greeting.write(std::uint8_t{0});
    append_text(greeting, std::string("NULL") + std::string(16 + 32, '\0'));
    connection_.write(greeting.bytes());
    connection_.read(64);
    ByteBuffer ready;
    append_text(ready, std::string("\x04\x1c\x05READY\x0bSocket-Type", 20));
    append_text(ready, std::string("\0\0\0\x06"
                                   "DEALER",
                                   10));
    connection_.write(ready.bytes());
  }

  /// One message of one part.
  void send(std::span<const std::byte> body) {
    send_length(body.size());
    connection_.write(body);
  }
  /// A message whose body is announced and does not come.
  void send_length(std::uint64_t bytes) {
    ByteBuffer header;
    header.write(std::uint8_t{0x02});
    for (int shift = 56; shift >= 0; shift -= 8) {
      header.write(static_cast<std::uint8_t>(bytes >> shift));
    }
    connection_.write(header.bytes());
  }
  void close() { connection_.close(); }

 private:
  static void append_text(ByteBuffer& out, const std::string& text) {
    out.append(std::as_bytes(std::span(text)));
  }

  RawConnection connection_;
};

inline std::vector<std::byte> hello_message(std::uint64_t run_id, Rank from, Rank to,
                                            std::uint8_t version = 2, std::uint8_t stream = 0,
                                            std::uint8_t streams = 1) {
  ByteBuffer out;
  out.write(std::uint8_t{1});
  out.write(version);
  out.write(run_id);
  out.write(from);
  out.write(to);
  out.write(stream);
  out.write(streams);
  return std::move(out).take();
}

inline std::vector<std::byte> chunk_message(const ExchangeTag& tag, std::uint64_t total,
                                            std::uint64_t offset, std::size_t bytes) {
  ByteBuffer out;
  out.write(std::uint8_t{2});
  out.write(tag.round);
  out.write(tag.phase);
  out.write(tag.bucket);
  out.write(total);
  out.write(offset);
  out.append(std::vector<std::byte>(bytes));
  return std::move(out).take();
}

inline std::vector<std::byte> credit_message(std::uint32_t count) {
  ByteBuffer out;
  out.write(std::uint8_t{3});
  out.write(count);
  return std::move(out).take();
}

inline std::vector<std::byte> bye_message() { return {std::byte{4}}; }

/// A memory store that forgets nothing.
class KeepingStore final : public Store {
 public:
  Status set(std::string_view key, std::span<const std::byte> value) override {
    return store_->set(key, value);
  }
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override {
    return store_->get(key, deadline);
  }
  Status remove(std::string_view) override { return {}; }

 private:
  std::shared_ptr<Store> store_ = make_memory_store();
};

/// Where `rank` listens, from what it left in the store for `peer`: two numbers and the address.
inline std::string listening_address(Store& store, std::uint64_t run_id, Rank rank, Rank peer) {
  const auto key = fmt::format("{:016x}/zmq/{}-{}", run_id, rank, peer);
  const auto card = store.get(key, Deadline::after(std::chrono::seconds(60)));
  REQUIRE(card.ok());
  REQUIRE(card->size() > 8);
  return {reinterpret_cast<const char*>(card->data()) + 8, card->size() - 8};
}

}  // namespace sotto::test

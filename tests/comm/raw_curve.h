// A client of ZeroMQ's encrypted sockets made without ZeroMQ, so that it can break every rule:
// ZMTP 3.1 (rfc.zeromq.org/spec/37) and CurveZMQ (rfc.zeromq.org/spec/26) with libsodium.
//
// Its names are those of the specifications: C, C′ the client's lasting and passing keys, S, S′ the
// server's; a command's box is under the nonce that its name gives.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <sodium.h>

#include <sotto/base/bytes.h>
#include <sotto/comm/trust/keys.h>

#include "raw_peer.h"

namespace sotto::test {

using Bytes = std::vector<std::byte>;

inline void append_text(Bytes& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}
inline void append(Bytes& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}
inline void append_big_endian(Bytes& out, std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out.push_back(static_cast<std::byte>(value >> shift));
  }
}

/// The 64 bytes with which both sides begin.
inline Bytes greeting(std::string_view mechanism, int minor = 1, bool as_server = false) {
  Bytes out;
  append_text(out, std::string_view("\xff\0\0\0\0\0\0\0\0\x7f\x03", 11));
  out.push_back(static_cast<std::byte>(minor));
  append_text(out, mechanism);
  out.resize(32);
  out.push_back(static_cast<std::byte>(as_server ? 1 : 0));
  out.resize(64);
  return out;
}

/// A frame of ZMTP: flags (1 more, 2 long, 4 command), length, body.
inline Bytes frame_of(std::span<const std::byte> body, unsigned flags) {
  Bytes out;
  const bool is_long = body.size() > 255;
  out.push_back(static_cast<std::byte>(flags | (is_long ? 2U : 0U)));
  append_big_endian(out, body.size(), is_long ? 8 : 1);
  append(out, body);
  return out;
}
inline Bytes command_frame(std::span<const std::byte> body) { return frame_of(body, 4); }

/// What a client says of itself behind its key.
inline Bytes property(std::string_view name, std::string_view value) {
  Bytes out;
  out.push_back(static_cast<std::byte>(name.size()));
  append_text(out, name);
  append_big_endian(out, value.size(), 4);
  append_text(out, value);
  return out;
}

class RawCurve {
 public:
  RawCurve(std::string_view endpoint, const KeyPair& own, const PublicKey& server)
      : connection_(endpoint), own_(own), passing_(make_key_pair()), server_(server) {
    std::copy(server.bytes().begin(), server.bytes().end(), their_passing_.begin());
    REQUIRE(connection_.connected());
    properties_ = property("Socket-Type", "DEALER");
  }

  /// Goes into INITIATE, behind the socket's type.
  void claim(std::string_view name, std::string_view value) {
    append(properties_, property(name, value));
  }

  /// The whole handshake; false when the server refuses or ends it.
  bool let_in() {
    connection_.write(greeting("CURVE"));
    connection_.write(hello());
    if (!take_greeting() || !take_welcome()) {
      return false;
    }
    connection_.write(initiate());
    return take_ready();
  }

  // The steps, for those who stray from them.
  Bytes hello() {
    Bytes body;
    append_text(body, std::string_view("\x05HELLO\x01\0", 8));
    body.resize(8 + 72);
    append(body, passing_.public_key.bytes());
    append_nonce(body);
    const Bytes zeros(64);
    append(body, box("CurveZMQHELLO---", nonce_, zeros, server_.bytes(), passing_));
    return command_frame(body);
  }
  bool take_greeting() {
    std::array<std::byte, 64> theirs{};
    return connection_.fill(theirs);
  }
  /// Learns S′ and the cookie.
  bool take_welcome() {
    const auto body = take_frame();
    if (!body || body->size() != 168 || std::memcmp(body->data(), "\x07WELCOME", 8) != 0) {
      return false;
    }
    std::array<unsigned char, 24> nonce{};
    std::memcpy(nonce.data(), "WELCOME-", 8);
    std::memcpy(nonce.data() + 8, body->data() + 8, 16);
    Bytes plain(128);
    if (crypto_box_open_easy(raw(plain), raw(*body) + 24, 144, nonce.data(), raw(server_.bytes()),
                             raw(passing_.private_key.bytes())) != 0) {
      return false;
    }
    std::memcpy(their_passing_.data(), plain.data(), 32);
    cookie_.assign(plain.begin() + 32, plain.end());
    return true;
  }
  Bytes initiate() {
    std::array<std::byte, 16> vouch_nonce{};
    randombytes_buf(vouch_nonce.data(), vouch_nonce.size());
    Bytes plain(own_.public_key.bytes().begin(), own_.public_key.bytes().end());
    append(plain, vouch_nonce);
    Bytes vouched(passing_.public_key.bytes().begin(), passing_.public_key.bytes().end());
    append(vouched, server_.bytes());
    append(plain, box("VOUCH---", vouch_nonce, vouched, their_passing_, own_));
    append(plain, properties_);
    Bytes body;
    append_text(body, "\x08INITIATE");
    append(body, cookie_);
    append_nonce(body);
    append(body, box("CurveZMQINITIATE", nonce_, plain, their_passing_, passing_));
    return command_frame(body);
  }
  bool take_ready() {
    const auto body = take_frame();
    answer_ = body ? std::string(reinterpret_cast<const char*>(body->data()), body->size()) : "";
    return answer_.starts_with("\x05READY");
  }
  /// What the server said last: "\5READY…", "\5ERROR…", or "" when it closed the connection.
  const std::string& answer() const { return answer_; }

  /// A message as it goes over the wire.
  Bytes message(std::span<const std::byte> payload) {
    Bytes plain(1);
    append(plain, payload);
    Bytes body;
    append_text(body, "\x07MESSAGE");
    append_nonce(body);
    append(body, box("CurveZMQMESSAGEC", nonce_, plain, their_passing_, passing_));
    return frame_of(body, 0);
  }
  void send(std::span<const std::byte> payload) { connection_.write(message(payload)); }
  /// One chunk with a whole frame of `from`.
  void send_frame(Rank from, Round round, std::size_t payload) {
    const auto frame = make_frame(from, 0, {.round = round}, payload);
    auto chunk = chunk_message({.round = round}, frame.size(), 0, frame.size());
    std::memcpy(chunk.data() + chunk.size() - frame.size(), frame.data(), frame.size());
    send(chunk);
  }

  RawConnection& connection() { return connection_; }

 private:
  template <typename Range>
  static const unsigned char* raw(const Range& bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
  }
  static unsigned char* raw(Bytes& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

  void append_nonce(Bytes& out) {
    nonce_.clear();
    append_big_endian(nonce_, ++count_, 8);
    append(out, nonce_);
  }
  static Bytes box(std::string_view name, std::span<const std::byte> nonce,
                   std::span<const std::byte> plain, std::span<const std::byte> to,
                   const KeyPair& from) {
    std::array<unsigned char, 24> whole{};
    REQUIRE(name.size() + nonce.size() == whole.size());
    std::memcpy(whole.data(), name.data(), name.size());
    std::memcpy(whole.data() + name.size(), nonce.data(), nonce.size());
    Bytes out(plain.size() + crypto_box_MACBYTES);
    REQUIRE(crypto_box_easy(raw(out), raw(plain), plain.size(), whole.data(), raw(to),
                            raw(from.private_key.bytes())) == 0);
    return out;
  }
  std::optional<Bytes> take_frame() {
    std::array<std::byte, 2> head{};
    if (!connection_.fill(head)) {
      return std::nullopt;
    }
    REQUIRE((std::to_integer<unsigned>(head[0]) & 2U) == 0);  // handshakes are short
    Bytes body(std::to_integer<std::size_t>(head[1]));
    return connection_.fill(body) ? std::optional(std::move(body)) : std::nullopt;
  }

  RawConnection connection_;
  const KeyPair own_;
  const KeyPair passing_;
  const PublicKey server_;
  std::array<std::byte, 32> their_passing_{};  ///< S before S′ is known
  Bytes cookie_ = Bytes(96);
  Bytes properties_;
  Bytes nonce_;
  std::uint64_t count_ = 0;
  std::string answer_;
};

}  // namespace sotto::test

// TCP's part of a connection whose windows are modelled: the window and its acknowledgements or,
// where the way loses packets, all packets. Network (network.h) has one for each connection, and
// moves the bytes.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <sotto/sim/network/tcp/acknowledgements.h>
#include <sotto/sim/network/tcp/congestion_window.h>
#include <sotto/sim/network/tcp/packet_stream.h>
#include <sotto/sim/time.h>

namespace sotto {

class TcpStream {
 public:
  /// Begins with `window`.
  explicit TcpStream(const CongestionWindow& window) : window_(window) {}

  CongestionWindow& window() { return window_; }
  const CongestionWindow& window() const { return window_; }
  Acknowledgements& acknowledgements() { return acknowledgements_; }
  const Acknowledgements& acknowledgements() const { return acknowledgements_; }

  /// The way loses packets: they take the window's place. Null: it loses none.
  void set_packets(std::unique_ptr<PacketStream> packets) { packets_ = std::move(packets); }
  /// Null where the way loses nothing.
  PacketStream* packets() { return packets_.get(); }
  const PacketStream* packets() const { return packets_.get(); }

  /// The stream of the other direction, in whose queue acknowledgements wait, is this connection's.
  void pair_with(std::uint32_t reverse) { reverse_ = reverse; }
  /// That connection's number; empty: acknowledgements wait in no queue.
  std::optional<std::uint32_t> reverse() const {
    return reverse_ == kNone ? std::nullopt : std::optional(reverse_);
  }

  /// A round trip of the window begins.
  void start_round() { acknowledgements_.start_round(reverse_ != kNone); }
  /// `bytes` left the sender, the last of them at `now`.
  void sent(double bytes, SimTime now) {
    window_.sent(bytes, now);
    bytes_sent_ += bytes;
  }
  /// Bytes that have left the sender since the connection began.
  double bytes_sent() const { return bytes_sent_; }
  /// All that is under way is dropped, and the connection begins anew with `window`.
  void abort(const CongestionWindow& window) {
    window_ = window;
    acknowledgements_ = {};
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  CongestionWindow window_;
  Acknowledgements acknowledgements_;
  std::unique_ptr<PacketStream> packets_;
  std::uint32_t reverse_ = kNone;
  double bytes_sent_ = 0;
};

}  // namespace sotto

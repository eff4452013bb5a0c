// The receiver of one TCP connection whose packets may be lost: what it hands to its program, and
// when it acknowledges. Every second full packet is acknowledged, a lone one after 40 ms; at once
// where a packet is missing or came twice, and for the next sixteen packets (RFC 5681 §4.2, Linux's
// quick acknowledgements), as for the first sixteen of a connection.
//
// One thread at a time. A plain value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include <sotto/sim/network/tcp/tcp_sender.h>
#include <sotto/sim/time.h>

namespace sotto {

class TcpReceiver {
 public:
  /// `packet_bytes`: payload of a full packet.
  explicit TcpReceiver(double packet_bytes) : packet_bytes_(packet_bytes) {}

  /// A packet arrived. Returns the bytes that the program can read now, beyond those before.
  std::uint64_t take(const SentPacket& packet, SimTime now) {
    const bool repeated = packet.number < next_ || late_.contains(packet.number);
    const bool fills = !late_.empty();
    std::uint64_t read = 0;
    if (!repeated && packet.number > next_) {
      late_.emplace(packet.number, packet.bytes);
    } else if (!repeated) {
      read = packet.bytes;
      ++next_;
      for (auto one = late_.begin(); one != late_.end() && one->first == next_;
           one = late_.erase(one)) {
        read += one->second;
        ++next_;
      }
    }
    unacknowledged_ += packet.bytes;
    if (repeated) {
      quick_ = kQuick;
    }
    if (repeated || fills || !late_.empty() || quick_ > 0 || unacknowledged_ > packet_bytes_) {
      due_at_ = now;
    } else {
      due_at_ = std::min(due_at_, plus(now, kDelay));
    }
    return read;
  }
  /// When an acknowledgement is to leave at the latest; kNever: none is due.
  SimTime due_at() const { return due_at_; }
  /// One has left, alone or with data.
  void acknowledge() {
    due_at_ = kNever;
    unacknowledged_ = 0;
    quick_ = std::max(quick_ - 1, 0);
  }

 private:
  static constexpr SimTime kDelay = 40'000'000;
  static constexpr int kQuick = 16;

  double packet_bytes_;
  std::uint64_t next_ = 0;                       ///< the first packet that is missing
  std::map<std::uint64_t, std::uint32_t> late_;  ///< bytes of those behind it that are there
  double unacknowledged_ = 0;                    ///< bytes since the last acknowledgement
  int quick_ = kQuick;
  SimTime due_at_ = kNever;
};

}  // namespace sotto

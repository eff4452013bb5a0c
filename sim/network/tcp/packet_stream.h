// A connection over a way that loses packets, there or back, packet by packet: both ends, the queue
// at the sender, and what is under way. The network (network.h) moves the packets.
//
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <sotto/sim/network/fifo.h>
#include <sotto/sim/network/tcp/packet_losses.h>
#include <sotto/sim/network/tcp/tcp_receiver.h>
#include <sotto/sim/network/tcp/tcp_sender.h>
#include <sotto/sim/time.h>

namespace sotto {

/// Data, an acknowledgement of what comes the other way, or both.
struct StreamPacket {
  SentPacket data;  ///< of no bytes: it carries none
  /// The number of the connection that it acknowledges packets of.
  std::uint32_t of = ~std::uint32_t{0};
  std::uint32_t epoch = 0;         ///< that connection's, when it left
  std::uint64_t acknowledges = 0;  ///< packets that had arrived by then, counted with repeats
  std::uint32_t waits_for = 0;     ///< the link whose queue it is in, where that can overflow
};

/// A packet or an acknowledgement under way.
struct MovingPacket {
  StreamPacket packet;
  SimTime at = 0;  ///< it arrives
};

/// A message in the stream.
struct StreamMessage {
  std::uint64_t bytes = 0;
  double end = 0;       ///< bytes of the stream up to its end
  bool notice = false;  ///< nobody waits for it
};

struct PacketStream {
  /// With the losses of the way there and of the way back.
  PacketStream(const TcpSenderOptions& options, PacketLosses way, PacketLosses way_back)
      : sender(options),
        receiver(options.packet_bytes),
        losses(std::move(way)),
        losses_back(std::move(way_back)) {}

  /// A message follows those before it.
  void write(std::uint64_t bytes, bool notice, SimTime now) {
    constexpr double kNoticeBytes = 64;
    const double size = notice ? kNoticeBytes : static_cast<double>(bytes);
    written += size > 0 ? size : 1;  // a message of no size is one byte, to arrive at all
    messages.push({.bytes = bytes, .end = written, .notice = notice});
    awaited += notice ? 0 : 1;
    sender.write(size > 0 ? size : 1, now);
  }

  TcpSender sender;
  TcpReceiver receiver;
  PacketLosses losses;
  PacketLosses losses_back;        ///< those of acknowledgements that follow no data
  Fifo<StreamPacket> queue;        ///< packets that have not left; the first one leaves
  std::size_t data_queued = 0;     ///< of these, packets with data
  bool may_overflow = false;       ///< the way has a link with a queue that can overflow
  Fifo<MovingPacket> moving;       ///< packets that have left, in the order in which they arrive
  Fifo<MovingPacket> moving_back;  ///< acknowledgements that follow no data
  Fifo<ArrivedPacket> arrived;     ///< packets that the sender has not heard of
  std::uint64_t heard = 0;         ///< packets that it has heard of, counted with repeats
  Fifo<StreamMessage> messages;
  std::size_t awaited = 0;     ///< of these, messages that somebody waits for
  Fifo<std::uint64_t> landed;  ///< bytes of messages that arrive now
  double written = 0;
  double read = 0;
  double ahead = 0;                  ///< bytes of the next packet that have left already
  SimTime last_landing = 0;          ///< the time when the last packet to arrive does
  SimTime wakes_at = kNever;         ///< the time of the event that wakes the sender
  SimTime acknowledges_at = kNever;  ///< the time of the event of a delayed acknowledgement
};

}  // namespace sotto

// The frames of one exchange: one going out, one coming in from each peer.
//
// A building block of the algorithms, not for users. An algorithm encodes into outgoing(), posts,
// and then reads payloads by edge, in rank order, whatever the order in which they came. Payloads
// stand behind their headers, so nothing is copied on either side.
//
// One thread at a time. Owns all frame buffers; allocates only in the constructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/frame.h>
#include <sotto/base/status.h>
#include <sotto/optim/local_node.h>
#include <sotto/topology/topology.h>

namespace sotto {

/// Who takes part in an exchange and what is due in it. The edges must outlive the exchange.
struct ExchangePlan {
  ExchangeTag tag;
  std::span<const Edge> to;
  std::span<const Edge> from;
  std::size_t elements_out = 0;
  std::size_t elements_in = 0;
};

class Mailbox {
 public:
  /// Room for a frame from each of `senders` peers and one to send, of at most `payload_bytes`.
  Mailbox(const LocalNode& node, std::size_t senders, std::size_t payload_bytes);

  std::size_t max_frame_bytes() const { return outgoing_.size(); }

  /// Where the payload of the next frame is to be encoded. Requires !open().
  std::span<std::byte> outgoing();
  /// Seals the first `payload_bytes` of outgoing() into a frame, and writes to `out` the exchange
  /// that carries it to all of plan.to and brings one frame from each of plan.from.
  void post(const ExchangePlan& plan, std::size_t payload_bytes, Exchange& out);

  /// Seals a further frame of the exchange just posted, whose payload is as long as the one posted
  /// and stands at `frame[kFrameHeaderBytes …]`: for a peer that is to get other bytes. The frame
  /// is the caller's, stays untouched while the exchange is under way, and is returned cut to
  /// length.
  std::span<const std::byte> seal(std::span<std::byte> frame) const;

  /// An exchange is under way.
  bool open() const { return open_; }
  Round round() const { return plan_.tag.round; }
  std::uint16_t phase() const { return plan_.tag.phase; }
  /// The peers of the exchange under way or last closed; payloads are numbered alike.
  std::span<const Edge> from() const { return plan_.from; }
  /// The payload that was posted.
  std::span<const std::byte> sent() const;
  /// The payload that came from from()[edge].
  std::span<const std::byte> payload(std::size_t edge) const { return slots_[edge].payload; }

  /// Takes a frame and returns the number of its edge. A frame that is damaged, foreign, not due,
  /// or here already is a fault, counted, and changes nothing else.
  Result<std::size_t> accept(Rank from, std::span<const std::byte> frame);
  /// Takes back accept: the payload turned out to be bad, and a right one is still due. Returns
  /// `why` with the sender's name, counted.
  Status refuse(std::size_t edge, const Status& why);
  /// Fault::unexpected naming the peers whose frames are missing, unless all are there.
  Status require_complete() const;
  /// Ends the exchange; requires that all frames are there.
  void close();

  std::uint64_t bad_frames() const { return bad_frames_; }

 private:
  struct Slot {
    std::vector<std::byte> frame;
    std::span<const std::byte> payload;
    bool arrived = false;
  };

  /// Checks a parsed header against what is due; empty when all is right.
  std::string objection(const FrameHeader& header, Rank from) const;
  Status refusal(Fault fault, Rank from, std::string_view why);

  const LocalNode& node_;
  std::vector<std::byte> outgoing_;
  std::vector<Slot> slots_;
  ExchangePlan plan_;
  std::size_t sent_bytes_ = 0;
  bool open_ = false;
  std::uint64_t bad_frames_ = 0;
};

}  // namespace sotto

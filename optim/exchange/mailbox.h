// The frames of one exchange: those going out, the same for all or one for each peer, and one
// coming in from each peer.
//
// A building block of the algorithms, not for users. An algorithm encodes into outgoing() and
// posts; the exchange is then due until next_exchange() hands it out. Once it is complete, `accept`
// takes its frames, and payloads are read by edge, in rank order. Payloads stand behind their
// headers, so nothing is copied on either side.
//
// One thread at a time. Owns all frame buffers; allocates only in the constructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/frame.h>
#include <sotto/base/status.h>
#include <sotto/optim/exchange/frame_room.h>
#include <sotto/optim/local_node.h>
#include <sotto/topology/topology.h>

namespace sotto {

/// The peers of an exchange and the frames due in it. The memory behind the spans must outlive the
/// exchange.
struct ExchangePlan {
  ExchangeTag tag;
  std::uint16_t compressor = 0;  ///< wire id of the compressor of the frames on both sides
  std::span<const Edge> to;
  std::span<const Edge> from;
  std::size_t elements_out = 0;
  std::size_t elements_in = 0;
  /// Elements by edge of `from`, in place of elements_in, where the senders' differ.
  std::span<const std::size_t> elements_by_sender = {};
  /// Compressors by edge of `from`, in place of compressor, for the frames that come in.
  std::span<const std::uint16_t> compressors_by_sender = {};
  /// Frames that come in may stand for fewer elements than is said here, which are then the most.
  bool at_most = false;

  /// Elements that the frame along in-edge `edge` stands for.
  std::size_t elements_from(std::size_t edge) const {
    return elements_by_sender.empty() ? elements_in : elements_by_sender[edge];
  }
  /// The wire id of that frame's compressor.
  std::uint16_t compressor_from(std::size_t edge) const {
    return compressors_by_sender.empty() ? compressor : compressors_by_sender[edge];
  }
};

/// A payload that stands encoded in a mailbox.
struct Parcel {
  std::size_t elements = 0;  ///< elements that it encodes
  std::size_t payload_bytes = 0;
  /// Wire id of its compressor, if that is not the plan's.
  std::optional<std::uint16_t> compressor = {};
};

class Mailbox {
 public:
  /// Room for a frame from each of `senders` peers and `parcels` ≥ 1 to send, of at most
  /// `payload_bytes`.
  Mailbox(const LocalNode& node, std::size_t senders, std::size_t payload_bytes,
          std::size_t parcels = 1);
  /// A mailbox with parcels of different lengths: at least one, and the senders' are no
  /// longer than the longest.
  /// With `room`, which must outlive it, it shares frames with others.
  Mailbox(const LocalNode& node, std::size_t senders, const std::vector<std::size_t>& parcel_bytes,
          FrameRoom* room = nullptr);

  /// Takes the room for frames that come in from `room`, where it is not null. Before the first
  /// exchange, and only by an algorithm that reads payloads nowhere but in `complete`.
  void share_incoming(FrameRoom* room);
  /// Takes the room for frames that go out from `room`, where it is not null. Before the first
  /// exchange, and only by an algorithm that does not ask for what it has sent.
  void share_outgoing(FrameRoom* room);

  std::size_t max_frame_bytes() const { return max_frame_bytes_; }

  /// The memory for the payload of the next frame, or of its parcel of this number. Requires
  /// !open().
  std::span<std::byte> outgoing(std::size_t parcel = 0);
  /// Seals the first `payload_bytes` of outgoing() into a frame, and opens the exchange that
  /// carries it to all of plan.to and brings one frame from each of plan.from. It is due from then
  /// on.
  void post(const ExchangePlan& plan, std::size_t payload_bytes);
  /// Posts, as post, a frame of its own from outgoing(i) for each plan.to[i]; the parcels say how
  /// many elements and bytes, in place of plan.elements_out.
  void post_each(const ExchangePlan& plan, std::span<const Parcel> parcels);
  /// Posts, as post, the frame of parcels[choice[i]] for each plan.to[i]. At least one parcel;
  /// sent() then shows the first.
  void post_chosen(const ExchangePlan& plan, std::span<const Parcel> parcels,
                   std::span<const std::size_t> choice);
  /// Sends `frame` to plan.to[k] in place of the one that was posted.
  void send_instead(std::size_t k, std::span<const std::byte> frame) {
    due_.sends[k].frame = frame;
  }
  /// The frame that goes to plan.to[k].
  std::span<const std::byte> frame_to(std::size_t k) const { return due_.sends[k].frame; }
  /// Writes the exchange that is due to `out`; false when none is.
  bool next_exchange(Exchange& out);

  /// Seals a further frame of the exchange just posted, with a payload as long as the one posted,
  /// which stands at `frame[kFrameHeaderBytes …]`: for a peer that is to get other bytes. The frame
  /// is the caller's, stays untouched while the exchange is under way, and is returned cut to
  /// length.
  std::span<const std::byte> seal(std::span<std::byte> frame) const;

  /// An exchange is under way.
  bool open() const { return open_; }
  Round round() const { return plan_.tag.round; }
  std::uint16_t phase() const { return plan_.tag.phase; }
  /// The peers of the exchange under way or last closed; payloads are numbered alike.
  std::span<const Edge> from() const { return plan_.from; }
  /// The payload that `post` took.
  std::span<const std::byte> sent() const;
  /// The payload that came from from()[edge].
  std::span<const std::byte> payload(std::size_t edge) const { return slots_[edge].payload; }

  /// Judges the payload of an edge, which has been taken.
  using Judge = std::function<Status(std::size_t edge)>;
  /// Takes the frames of the exchange under way, which is complete. A frame that is damaged or
  /// foreign is a fault that names its sender and is counted, as is one with a payload that `judge`
  /// finds bad; frames before it have been taken, and another call goes on with it. Frames that are
  /// missing are a fault that names their senders.
  Status accept(const Exchange& exchange, const Judge& judge = {});
  /// Takes back a frame that was accepted: the payload turned out to be bad, and a right one is
  /// still due. Returns `why` with the sender's name, counted.
  Status refuse(std::size_t edge, const Status& why);
  /// Ends the exchange; requires that all frames have arrived.
  void close();

  std::uint64_t bad_frames() const { return bad_frames_; }

 private:
  struct Frame {
    Frame(std::shared_ptr<std::byte> frame, std::size_t length)
        : memory(std::move(frame)), bytes(memory.get(), length) {}

    std::shared_ptr<std::byte> memory;
    std::span<std::byte> bytes;
  };
  struct Slot {
    Frame frame;
    std::span<const std::byte> payload;
    bool arrived = false;
  };

  Frame make_frame(FrameRoom::Way way, std::size_t number, std::size_t length) const;
  Frame shared_frame(FrameRoom& room, FrameRoom::Way way, std::size_t number,
                     std::size_t length) const {
    return {room.frame(node_, way, number, length), length};
  }
  /// Opens the exchange: it brings a frame from each of plan.from, and sends nothing yet.
  void open_exchange(const ExchangePlan& plan);
  std::span<const std::byte> seal(std::span<std::byte> frame, const Parcel& parcel) const;
  /// Checks a parsed header against the frame that is due from an edge; empty when all is right.
  std::string objection(const FrameHeader& header, std::size_t edge) const;
  Status accept(std::size_t edge, std::span<const std::byte> frame);
  /// Fault::unexpected naming the peers with missing frames; OK if there are none.
  Status require_frames(const Exchange& exchange) const;
  Status refusal(Fault fault, Rank from, std::string_view why);

  const LocalNode& node_;
  FrameRoom* room_;                     ///< null: the frames are its own
  SettingsStamp settings_ = kAsAgreed;  ///< stamp of settings in the exchange under way
  std::vector<Frame> outgoing_;
  std::vector<Slot> slots_;
  std::size_t max_frame_bytes_ = 0;
  ExchangePlan plan_;
  Exchange due_;  ///< the exchange as it was posted
  std::size_t sent_bytes_ = 0;
  bool open_ = false;
  bool taken_ = true;  ///< nothing is due
  std::uint64_t bad_frames_ = 0;
};

}  // namespace sotto

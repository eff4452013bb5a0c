#include "channels.h"

#include <algorithm>
#include <deque>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>

#include "../../comm/zmq/channels/channel_wire.h"
#include "../../comm/zmq/channels/message_receiver.h"
#include "../../comm/zmq/channels/message_sender.h"

namespace sotto_fuzz {
namespace {

namespace wire = sotto::internal::channel_wire;
using sotto::check;

constexpr std::size_t kMostMessage = 300;

/// One side of a channel: it sends messages, takes what comes, and counts what that costs.
class Side {
 public:
  Side() {
    for (const std::size_t bytes : {5000U, 0U, 1U, 300U}) {
      out_.add({.head = std::vector<std::byte>(bytes), .body = {}});
    }
    receipt();
  }

  /// False when the peer broke a rule.
  bool hear(const wire::Message& message) {
    now_ += std::chrono::milliseconds(7);
    if (const auto* chunk = std::get_if<wire::Chunk>(&message)) {
      return take(*chunk);
    }
    if (const auto* receipt = std::get_if<wire::Receipt>(&message)) {
      const bool taken = out_.take(*receipt, now_).ok();
      send();
      return taken;
    }
    return true;
  }

 private:
  bool take(const wire::Chunk& chunk) {
    const auto taken = in_.take(chunk);
    if (!taken) {
      return false;
    }
    if (*taken) {
      check((*taken)->size() <= kMostMessage && (*taken)->size() == chunk.piece.total,
            "a message is as long as it said, and not too long");
      held_.push_back(wire::cost_of(chunk.piece.total));
      cost_ += held_.back();
      check(cost_ <= in_.window(), "what a peer may have here is bounded");
      if (chunk.number % 3 == 2) {  // its reader is slow
        cost_ -= held_.front();
        held_.pop_front();
      }
    }
    receipt();
    return true;
  }
  void receipt() {
    const auto receipt = in_.receipt(cost_);
    check(receipt.allowed >= said_.allowed && receipt.received >= said_.received,
          "a receipt takes nothing back");
    in_.said(receipt);
    said_ = receipt;
  }
  void send() {
    for (int i = 0; i < 4 && out_.ready(); ++i) {
      const auto chunk = out_.next();
      const auto parsed = wire::parse(wire::write(chunk));
      check(parsed.ok(), "a chunk that goes out keeps the grammar");
      out_.gone(now_);
    }
  }

  sotto::internal::MessageReceiver in_{kMostMessage};
  sotto::internal::MessageSender out_{std::chrono::seconds(1)};
  sotto::internal::MessageSender::Clock::time_point now_;
  wire::Receipt said_;
  std::deque<std::uint64_t> held_;
  std::uint64_t cost_ = 0;
};

}  // namespace

void hear_channel(std::string_view /*name*/, std::span<const std::byte> input) {
  sotto::ByteReader in(input);
  Side side;
  while (in.remaining() > 0) {
    const std::size_t length = in.read<std::uint16_t>();
    const auto bytes = in.take(std::min(length, in.remaining()));
    // A buffer of just this length, so that the sanitizer sees a read beyond it.
    const std::vector<std::byte> exact(bytes.begin(), bytes.end());
    const auto message = wire::parse(exact);
    if (!message.ok()) {
      check(message.status().fault() == sotto::Fault::malformed,
            "what does not parse is malformed");
      return;
    }
    check(wire::write(*message) == exact, "a message that parses is the one that is written");
    if (!side.hear(*message)) {
      return;
    }
  }
}

}  // namespace sotto_fuzz

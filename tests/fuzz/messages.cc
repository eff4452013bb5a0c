#include "messages.h"

#include <algorithm>
#include <string>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/comm/transport.h>

#include "../../comm/zmq/store/stored_values.h"
#include "../../comm/zmq/store/tcp_store_wire.h"
#include "../../comm/zmq/transport/frame_receiver.h"
#include "../../comm/zmq/transport/wire.h"

namespace sotto_fuzz {
namespace {

namespace internal = sotto::internal;
namespace wire = sotto::internal::zmq_wire;
using sotto::ByteReader;
using sotto::check;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kMostFrame = 400;
constexpr std::size_t kRoom = 40'000;

/// A buffer of just this length, so that the sanitizer sees a read beyond it.
Bytes next_message(ByteReader& in) {
  const std::size_t length = in.read<std::uint16_t>();
  const auto bytes = in.take(std::min(length, in.remaining()));
  return {bytes.begin(), bytes.end()};
}

std::span<const std::byte> view(const zmq::message_t& message) {
  return {static_cast<const std::byte*>(message.data()), message.size()};
}

/// Node 0, which hears node 1 in rounds that follow each other.
class Hearing {
 public:
  Hearing() : ledger_(options()), inbox_(1, kMostFrame, 2) { post(); }

  /// False when the peer broke a rule.
  bool hear(const wire::Chunk& chunk) {
    const auto taken = inbox_.take(chunk, ledger_);
    if (!taken.ok()) {
      check(taken.status().fault() == sotto::Fault::malformed ||
                taken.status().fault() == sotto::Fault::unexpected,
            "a chunk is refused as malformed or unexpected");
      return false;
    }
    while (ledger_.has_event()) {
      const auto event = ledger_.take_event();
      if (event.kind == sotto::TransportEvent::Kind::frame) {
        check(event.bytes <= kMostFrame && event.tag.round == round_,
              "a frame that arrives is due, and fits");
      } else {
        ++round_;
        post();
        if (!inbox_.match(ledger_).ok()) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  static sotto::TransportOptions options() {
    sotto::TransportOptions options;
    options.nodes = 2;
    options.from = {1};
    options.max_frame_bytes = kMostFrame;
    return options;
  }
  void post() {
    // Every third round's room is smaller.
    room_.assign(round_ % 3 == 2 ? kMostFrame / 2 : kMostFrame, std::byte{0});
    sotto::Exchange exchange;
    exchange.tag = {.round = round_};
    exchange.receives.push_back({1, room_});
    check(ledger_.open(exchange).ok(), "an exchange opens");
  }

  internal::Ledger ledger_;
  internal::FrameReceiver inbox_;
  Bytes room_;
  sotto::Round round_ = 0;
};

void answer(internal::StoredValues& values, sotto::Rank client, const std::string& line,
            const internal::store_wire::Request& request) {
  using internal::store_wire::Kind;
  if (request.kind == Kind::set) {
    (void)values.set(client, line, {request.key, request.piece});
  } else if (request.kind == Kind::remove) {
    (void)values.remove(client, request.key);
  } else {
    const auto value = values.get(client, request.key);
    if (value.ok() && *value != nullptr && request.piece.offset <= (*value)->bytes.size()) {
      const auto piece = internal::store_wire::make_piece(**value, request.piece.offset,
                                                          internal::store_wire::kPieceBytes);
      check(internal::store_wire::parse_reply(view(piece)).ok(), "an answer keeps the grammar");
    }
  }
}

}  // namespace

void hear_transport(std::string_view /*name*/, std::span<const std::byte> input) {
  ByteReader in(input);
  Hearing node;
  while (in.remaining() > 0) {
    const Bytes bytes = next_message(in);
    const auto message = wire::parse(bytes);
    if (!message.ok()) {
      check(message.status().fault() == sotto::Fault::malformed,
            "what does not parse is malformed");
      return;
    }
    if (const auto* hello = std::get_if<wire::Hello>(&*message)) {
      check(std::ranges::equal(view(wire::make_hello(*hello)), bytes),
            "a hello that parses is the one that is written");
    }
    const auto* chunk = std::get_if<wire::Chunk>(&*message);
    if (chunk != nullptr && !node.hear(*chunk)) {
      return;
    }
  }
}

void ask_store(std::string_view /*name*/, std::span<const std::byte> input) {
  ByteReader in(input);
  internal::StoredValues values(kRoom);
  while (in.remaining() > 0) {
    const auto line = in.read<std::uint8_t>();
    const Bytes bytes = next_message(in);
    (void)internal::store_wire::parse_reply(bytes);
    const auto request = internal::store_wire::parse_request(bytes);
    if (request) {
      check(std::ranges::equal(view(internal::store_wire::make_request(*request)), bytes),
            "a request that parses is the one that is written");
      answer(values, 1 + line % 3, std::to_string(line), *request);
    }
  }
}

}  // namespace sotto_fuzz

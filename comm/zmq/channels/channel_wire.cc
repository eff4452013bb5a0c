#include "channel_wire.h"

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>

namespace sotto::internal::channel_wire {
namespace {

enum Kind : std::uint8_t { kGreeting = 1, kAccept = 2, kChunk = 3, kReceipt = 4, kBye = 5 };

struct Writer {
  ByteWriter& out;
  void operator()(const Greeting& greeting) const {
    out.write(std::uint8_t{kGreeting});
    out.write(kVersion);
    out.write(greeting.session);
  }
  void operator()(const Accept& accept) const {
    out.write(std::uint8_t{kAccept});
    out.write(accept.session);
  }
  void operator()(const Chunk& chunk) const {
    out.write(std::uint8_t{kChunk});
    out.write(chunk.number);
    write_place(out, chunk.piece);
    out.write_bytes(chunk.piece.bytes);
    out.write_bytes(chunk.rest);
  }
  void operator()(const Receipt& receipt) const {
    out.write(std::uint8_t{kReceipt});
    out.write(receipt.received);
    out.write(receipt.allowed);
  }
  void operator()(const Bye&) const { out.write(std::uint8_t{kBye}); }
};

/// Bytes that a message takes.
struct Size {
  std::size_t operator()(const Greeting& /*greeting*/) const { return 2 + sizeof(std::uint64_t); }
  std::size_t operator()(const Accept& /*accept*/) const { return 1 + sizeof(std::uint64_t); }
  std::size_t operator()(const Chunk& chunk) const { return kChunkHeaderBytes + chunk.size(); }
  std::size_t operator()(const Receipt& /*receipt*/) const { return 1 + 2 * sizeof(std::uint64_t); }
  std::size_t operator()(const Bye& /*bye*/) const { return 1; }
};

void write_to(ByteWriter out, const Message& message) {
  std::visit(Writer{out}, message);
  check(out.remaining() == 0, "a message has the length that was made room for");
}

Status malformed(const std::string& what) { return {Fault::malformed, what}; }

Result<Message> parse_kind(std::uint8_t kind, ByteReader& in) {
  switch (kind) {
    case kGreeting: {
      if (const auto version = in.read<std::uint8_t>(); version != kVersion) {
        return malformed(fmt::format("version {} where {} is spoken", version, kVersion));
      }
      return Message(Greeting{in.read<std::uint64_t>()});
    }
    case kAccept:
      return Message(Accept{in.read<std::uint64_t>()});
    case kChunk: {
      Chunk chunk;
      chunk.number = in.read<std::uint64_t>();
      chunk.piece = read_place(in);
      chunk.piece.bytes = in.take(in.remaining());
      if (!lies_inside(chunk.piece, kMostChunkBytes)) {
        return malformed(
            fmt::format("a chunk of {} bytes at {} does not lie inside a message of {}",
                        chunk.piece.bytes.size(), chunk.piece.offset, chunk.piece.total));
      }
      return Message(chunk);
    }
    case kReceipt: {
      Receipt receipt;
      receipt.received = in.read<std::uint64_t>();
      receipt.allowed = in.read<std::uint64_t>();
      return Message(receipt);
    }
    case kBye:
      return Message(Bye{});
    default:
      return malformed(fmt::format("kind {} is unknown", kind));
  }
}

/// Whether a session that the message names is not 0.
bool has_session(const Message& message) {
  const auto* greeting = std::get_if<Greeting>(&message);
  const auto* accept = std::get_if<Accept>(&message);
  return (greeting == nullptr || greeting->session != 0) &&
         (accept == nullptr || accept->session != 0);
}

}  // namespace

std::vector<std::byte> write(const Message& message) {
  std::vector<std::byte> bytes(std::visit(Size(), message));
  write_to(ByteWriter(bytes), message);
  return bytes;
}

zmq::message_t write_zmq(const Message& message) {
  zmq::message_t bytes(std::visit(Size(), message));
  write_to(writer_of(bytes), message);
  return bytes;
}

Result<Message> parse(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto kind = in.read<std::uint8_t>();
  auto message = parse_kind(kind, in);
  if (message.ok() && !in.finished()) {
    return malformed(fmt::format("{} bytes are a wrong length for kind {}", bytes.size(), kind));
  }
  if (message.ok() && !has_session(*message)) {
    return malformed("a session without a number");
  }
  return message;
}

}  // namespace sotto::internal::channel_wire

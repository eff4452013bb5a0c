#include "wire.h"

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/bytes.h>

namespace sotto::internal::zmq_wire {
namespace {

enum Kind : std::uint8_t { kHello = 1, kChunk = 2, kCredit = 3, kBye = 4 };

ByteWriter writer(zmq::message_t& message) {
  return ByteWriter({static_cast<std::byte*>(message.data()), message.size()});
}

/// A chunk lies inside its frame and is empty only never: an empty one would make no progress.
bool inside(const Chunk& chunk) {
  return !chunk.bytes.empty() && chunk.offset <= chunk.total &&
         chunk.bytes.size() <= chunk.total - chunk.offset;
}

}  // namespace

zmq::message_t make_hello(const Hello& hello) {
  zmq::message_t message(18);
  auto out = writer(message);
  out.write(std::uint8_t{kHello});
  out.write(kVersion);
  out.write(hello.run_id);
  out.write(hello.from);
  out.write(hello.to);
  return message;
}

zmq::message_t make_chunk(const ExchangeTag& tag, std::span<const std::byte> frame,
                          std::size_t offset, std::size_t* taken) {
  *taken = std::min(kChunkBytes, frame.size() - offset);
  zmq::message_t message(kChunkHeaderBytes + *taken);
  auto out = writer(message);
  out.write(std::uint8_t{kChunk});
  out.write(tag.round);
  out.write(tag.phase);
  out.write(tag.bucket);
  out.write(std::uint64_t{frame.size()});
  out.write(std::uint64_t{offset});
  check(out.position() == kChunkHeaderBytes, "a chunk header's layout");
  out.write_bytes(frame.subspan(offset, *taken));
  return message;
}

zmq::message_t make_credit(std::uint32_t count) {
  zmq::message_t message(5);
  auto out = writer(message);
  out.write(std::uint8_t{kCredit});
  out.write(count);
  return message;
}

zmq::message_t make_bye() {
  zmq::message_t message(1);
  writer(message).write(std::uint8_t{kBye});
  return message;
}

Result<Message> parse(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Message message;
  const auto kind = in.read<std::uint8_t>();
  if (kind == kHello) {
    if (const auto version = in.read<std::uint8_t>(); version != kVersion) {
      return Status(Fault::malformed,
                    fmt::format("protocol version {} where {} is spoken", version, kVersion));
    }
    Hello hello;
    hello.run_id = in.read<std::uint64_t>();
    hello.from = in.read<Rank>();
    hello.to = in.read<Rank>();
    message = hello;
  } else if (kind == kChunk) {
    Chunk chunk;
    chunk.tag.round = in.read<Round>();
    chunk.tag.phase = in.read<std::uint16_t>();
    chunk.tag.bucket = in.read<std::uint32_t>();
    chunk.total = in.read<std::uint64_t>();
    chunk.offset = in.read<std::uint64_t>();
    chunk.bytes = in.take(in.remaining());
    if (!inside(chunk)) {
      return Status(Fault::malformed,
                    fmt::format("a chunk of {} bytes at {} does not lie inside a frame of {}",
                                chunk.bytes.size(), chunk.offset, chunk.total));
    }
    message = chunk;
  } else if (kind == kCredit) {
    message = Credit{in.read<std::uint32_t>()};
  } else if (kind == kBye) {
    message = Bye{};
  } else {
    return Status(Fault::malformed, fmt::format("message kind {} is unknown", kind));
  }
  if (!in.finished()) {
    return Status(Fault::malformed, fmt::format("a message of {} bytes has a wrong length for "
                                                "its kind {}",
                                                bytes.size(), kind));
  }
  return message;
}

}  // namespace sotto::internal::zmq_wire

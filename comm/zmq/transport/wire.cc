#include "wire.h"

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/comm/transport.h>

namespace sotto::internal::zmq_wire {
namespace {

enum Kind : std::uint8_t { kHello = 1, kChunk = 2, kCredit = 3, kBye = 4 };

}  // namespace

zmq::message_t make_hello(const Hello& hello) {
  zmq::message_t message(20);
  auto out = writer_of(message);
  out.write(std::uint8_t{kHello});
  out.write(kVersion);
  out.write(hello.run_id);
  out.write(hello.from);
  out.write(hello.to);
  out.write(hello.stream);
  out.write(hello.streams);
  return message;
}

zmq::message_t make_chunk(const Chunk& chunk) {
  zmq::message_t message(kChunkHeaderBytes + chunk.piece.bytes.size());
  auto out = writer_of(message);
  out.write(std::uint8_t{kChunk});
  out.write(chunk.tag.round);
  out.write(chunk.tag.phase);
  out.write(chunk.tag.bucket);
  write_place(out, chunk.piece);
  check(out.position() == kChunkHeaderBytes, "a chunk header's layout");
  out.write_bytes(chunk.piece.bytes);
  return message;
}

zmq::message_t make_credit(std::uint32_t count) {
  zmq::message_t message(5);
  auto out = writer_of(message);
  out.write(std::uint8_t{kCredit});
  out.write(count);
  return message;
}

zmq::message_t make_bye() {
  zmq::message_t message(1);
  writer_of(message).write(std::uint8_t{kBye});
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
    hello.stream = in.read<std::uint8_t>();
    hello.streams = in.read<std::uint8_t>();
    if (hello.stream >= hello.streams || hello.streams > kMostStreams) {
      return Status(Fault::malformed, fmt::format("stream {} of {}, where there are 1 to {}",
                                                  hello.stream, hello.streams, kMostStreams));
    }
    message = hello;
  } else if (kind == kChunk) {
    Chunk chunk;
    chunk.tag.round = in.read<Round>();
    chunk.tag.phase = in.read<std::uint16_t>();
    chunk.tag.bucket = in.read<std::uint32_t>();
    chunk.piece = read_place(in);
    chunk.piece.bytes = in.take(in.remaining());
    if (!lies_inside(chunk.piece, kChunkBytes)) {
      return Status(Fault::malformed,
                    fmt::format("a chunk of {} bytes at {} does not lie inside a frame of {}",
                                chunk.piece.bytes.size(), chunk.piece.offset, chunk.piece.total));
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

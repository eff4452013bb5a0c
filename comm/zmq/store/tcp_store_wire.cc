#include "tcp_store_wire.h"

#include <algorithm>

#include <sotto/base/bytes.h>
#include <sotto/base/enum_reader.h>

#include "../../internal/store_key.h"

namespace sotto::internal::store_wire {
namespace {

constexpr std::size_t kRequestHeader = 1 + 4 + 8 + 8 + 8 + 2;
constexpr std::size_t kReplyHeader = 1 + 8 + 8;

bool fits(const Request& request) {
  return request.kind == Kind::set ? request.piece.total <= kMostStoreValueBytes &&
                                         lies_inside(request.piece, kPieceBytes)
                                   : request.piece.bytes.empty() && request.piece.total == 0;
}

zmq::message_t make_reply(Fault fault, std::uint64_t version, std::uint64_t total,
                          std::span<const std::byte> rest) {
  zmq::message_t message(kReplyHeader + rest.size());
  auto out = writer_of(message);
  out.write(static_cast<std::uint8_t>(fault));
  out.write(version);
  out.write(total);
  out.write_bytes(rest);
  return message;
}

}  // namespace

zmq::message_t make_request(const Request& request) {
  zmq::message_t message(kRequestHeader + request.key.size() + request.piece.bytes.size());
  auto out = writer_of(message);
  out.write(static_cast<std::uint8_t>(request.kind));
  out.write(request.wait_ms);
  out.write(request.version);
  write_place(out, request.piece);
  out.write(static_cast<std::uint16_t>(request.key.size()));
  check(out.position() == kRequestHeader, "a store request's layout");
  out.write_bytes(std::as_bytes(std::span(request.key)));
  out.write_bytes(request.piece.bytes);
  return message;
}

std::optional<Request> parse_request(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Request request;
  const auto kind = read_enum(in, Kind::set, Kind::remove);
  request.wait_ms = in.read<std::uint32_t>();
  request.version = in.read<std::uint64_t>();
  request.piece = read_place(in);
  const auto key = in.take(in.read<std::uint16_t>());
  request.key.assign(reinterpret_cast<const char*>(key.data()), key.size());
  request.piece.bytes = in.take(in.remaining());
  request.kind = kind.value_or(request.kind);
  if (!in.finished() || !kind || !fits(request) || !check_store_key(request.key)) {
    return std::nullopt;
  }
  return request;
}

zmq::message_t make_done() { return make_reply(Fault::none, 0, 0, {}); }

zmq::message_t make_piece(const StoredValues::Value& value, std::uint64_t offset,
                          std::size_t most) {
  const Piece piece = piece_at(value.bytes, offset, most);
  return make_reply(Fault::none, value.version, piece.total, piece.bytes);
}

zmq::message_t make_refusal(const Status& status) {
  return make_reply(status.fault(), 0, 0, std::as_bytes(std::span(status.message())));
}

Result<Reply> parse_reply(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto fault = in.read<std::uint8_t>();
  Reply reply;
  reply.version = in.read<std::uint64_t>();
  reply.total = in.read<std::uint64_t>();
  const auto rest = in.take(in.remaining());
  if (!in.finished() || fault > static_cast<std::uint8_t>(Fault::io) ||
      reply.total > kMostStoreValueBytes || (fault == 0 && rest.size() > reply.total)) {
    return Status(Fault::malformed, "the store's server sent an answer that makes no sense");
  }
  if (fault != static_cast<std::uint8_t>(Fault::none)) {
    return Status(static_cast<Fault>(fault),
                  std::string(reinterpret_cast<const char*>(rest.data()), rest.size()));
  }
  reply.bytes.assign(rest.begin(), rest.end());
  return reply;
}

}  // namespace sotto::internal::store_wire

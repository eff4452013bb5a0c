#include "tcp_store_wire.h"

#include <sotto/base/bytes.h>

#include "../internal/store_key.h"

namespace sotto::internal::store_wire {
namespace {

ByteWriter writer(zmq::message_t& message) {
  return ByteWriter({static_cast<std::byte*>(message.data()), message.size()});
}

}  // namespace

zmq::message_t make_request(const Request& request) {
  zmq::message_t message(7 + request.key.size() + request.value.size());
  auto out = writer(message);
  out.write(static_cast<std::uint8_t>(request.kind));
  out.write(request.wait_ms);
  out.write(static_cast<std::uint16_t>(request.key.size()));
  out.write_bytes(std::as_bytes(std::span(request.key)));
  out.write_bytes(request.value);
  return message;
}

std::optional<Request> parse_request(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Request request;
  const auto kind = in.read<std::uint8_t>();
  request.kind = static_cast<Kind>(kind);
  request.wait_ms = in.read<std::uint32_t>();
  const auto key = in.take(in.read<std::uint16_t>());
  request.key.assign(reinterpret_cast<const char*>(key.data()), key.size());
  request.value = in.take(in.remaining());
  const bool known = kind >= 1 && kind <= 3;
  const bool fits = request.kind == Kind::set || request.value.empty();
  if (!in.finished() || !known || !fits || !check_store_entry(request.key, request.value)) {
    return std::nullopt;
  }
  return request;
}

zmq::message_t make_reply(std::span<const std::byte> value) {
  zmq::message_t message(1 + value.size());
  auto out = writer(message);
  out.write(static_cast<std::uint8_t>(Fault::none));
  out.write_bytes(value);
  return message;
}

zmq::message_t make_refusal(const Status& status) {
  zmq::message_t message(1 + status.message().size());
  auto out = writer(message);
  out.write(static_cast<std::uint8_t>(status.fault()));
  out.write_bytes(std::as_bytes(std::span(status.message())));
  return message;
}

Result<std::vector<std::byte>> parse_reply(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const auto fault = in.read<std::uint8_t>();
  const auto rest = in.take(in.remaining());
  if (!in.finished() || fault > static_cast<std::uint8_t>(Fault::io)) {
    return Status(Fault::malformed, "the store's server sent an answer that makes no sense");
  }
  if (fault != static_cast<std::uint8_t>(Fault::none)) {
    return Status(static_cast<Fault>(fault),
                  std::string(reinterpret_cast<const char*>(rest.data()), rest.size()));
  }
  return std::vector(rest.begin(), rest.end());
}

}  // namespace sotto::internal::store_wire

#include <sotto/sites/live/epoch_hello.h>

#include <utility>

#include <sotto/base/bytes.h>

namespace sotto {

bool is_hello(std::span<const std::byte> message) {
  return !message.empty() && message[0] == std::byte{kEpochHelloKind};
}

std::vector<std::byte> encode(const EpochHello& hello) {
  ByteBuffer out;
  out.write(kEpochHelloKind);
  out.write(kEpochHelloProtocol);
  out.write(hello.incarnation);
  out.write(hello.history[0]);
  out.write(hello.history[1]);
  out.write(hello.steps);
  return std::move(out).take();
}

std::optional<EpochHello> parse_hello(std::span<const std::byte> message) {
  ByteReader in(message);
  const auto kind = in.read<std::uint8_t>();
  const auto protocol = in.read<std::uint8_t>();
  EpochHello hello;
  hello.incarnation = in.read<sites::Incarnation>();
  hello.history[0] = in.read<std::uint64_t>();
  hello.history[1] = in.read<std::uint64_t>();
  hello.steps = in.read<Round>();
  const bool ours = kind == kEpochHelloKind && protocol == kEpochHelloProtocol;
  return in.finished() && ours && hello.incarnation != 0 ? std::optional(hello) : std::nullopt;
}

}  // namespace sotto

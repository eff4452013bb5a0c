#include <sotto/sites/elastic/elastic_hello.h>

#include <utility>

#include <sotto/base/bytes.h>

namespace sotto {
namespace {

constexpr unsigned kMember = 1;
constexpr unsigned kHears = 2;
constexpr unsigned kGaveUp = 4;
constexpr unsigned kFirstSeed = 8;
constexpr unsigned kStuck = 16;
constexpr unsigned kAllFlags = kMember | kHears | kGaveUp | kFirstSeed | kStuck;

}  // namespace

bool is_hello(std::span<const std::byte> message) {
  return !message.empty() && message[0] == std::byte{kElasticHelloKind};
}

std::vector<std::byte> encode(const ElasticHello& hello) {
  ByteBuffer out;
  out.write(kElasticHelloKind);
  out.write(kElasticHelloProtocol);
  out.write(hello.incarnation);
  out.write(hello.history[0]);
  out.write(hello.history[1]);
  out.write(hello.steps);
  out.write(hello.self.model);
  out.write(static_cast<std::uint8_t>((hello.member ? kMember : 0) | (hello.hears ? kHears : 0) |
                                      (hello.self.gave_up ? kGaveUp : 0) |
                                      (hello.self.first_seed ? kFirstSeed : 0) |
                                      (hello.self.stuck ? kStuck : 0)));
  return std::move(out).take();
}

std::optional<ElasticHello> parse_hello(std::span<const std::byte> message) {
  ByteReader in(message);
  const auto kind = in.read<std::uint8_t>();
  const auto protocol = in.read<std::uint8_t>();
  ElasticHello hello;
  hello.incarnation = in.read<sites::Incarnation>();
  hello.history[0] = in.read<std::uint64_t>();
  hello.history[1] = in.read<std::uint64_t>();
  hello.steps = in.read<Round>();
  hello.self.model = in.read<Round>();
  const unsigned flags = in.read<std::uint8_t>();
  hello.member = (flags & kMember) != 0;
  hello.hears = (flags & kHears) != 0;
  hello.self.gave_up = (flags & kGaveUp) != 0;
  hello.self.first_seed = (flags & kFirstSeed) != 0;
  hello.self.stuck = (flags & kStuck) != 0;
  const bool ours =
      kind == kElasticHelloKind && protocol == kElasticHelloProtocol && (flags & ~kAllFlags) == 0;
  return in.finished() && ours && hello.incarnation != 0 ? std::optional(hello) : std::nullopt;
}

}  // namespace sotto

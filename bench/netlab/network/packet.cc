#include "packet.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace sotto::netlab {
namespace {

/// struct virtio_net_hdr, whose own header is for C alone.
struct Offload {
  std::uint8_t flags = 0;
  std::uint8_t piece_type = 0;
  std::uint16_t header_bytes = 0;
  std::uint16_t segment_bytes = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};
static_assert(sizeof(Offload) == kOffloadBytes);
constexpr unsigned kNoPiece = 0;
constexpr unsigned kPieceOfTcp4 = 1;
constexpr unsigned kPieceWithCongestionMark = 0x80;

constexpr std::size_t kIpBytes = 20;
constexpr std::size_t kTcpBytes = 20;

std::uint8_t byte_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<std::uint8_t>(bytes[at]);
}

std::uint32_t big_endian(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value = value << 8U | byte_at(bytes, at + i);
  }
  return value;
}

/// The host of an address in `net`.
std::optional<Host> host_of(std::uint32_t address, std::uint32_t net, int hosts) {
  const std::uint32_t number = address - net;
  if (number < 1 || number > static_cast<std::uint32_t>(hosts)) {
    return std::nullopt;
  }
  return static_cast<Host>(number) - 1;
}

void set_big_endian(std::span<std::byte> bytes, std::size_t at, std::size_t size,
                    std::uint32_t value) {
  for (std::size_t i = size; i-- > 0; value >>= 8U) {
    bytes[at + i] = std::byte(value & 255U);
  }
}

/// The sum that IP and TCP check by (RFC 1071), of `sum` and words of 16 bits.
std::uint32_t folded(std::uint32_t sum) {
  while (sum > 0xFFFF) {
    sum = (sum & 0xFFFFU) + (sum >> 16U);
  }
  return sum;
}

std::size_t ip_header_of(std::span<const std::byte> ip) {
  return 4 * std::size_t{byte_at(ip, 0) & 15U};
}

/// A stream's piece that the kernel left whole.
struct Piece {
  std::size_t headers = 0;  ///< bytes, IP's and TCP's
  std::uint32_t payload = 0;
  std::uint32_t segments = 1;
};

/// Nothing for what is no whole piece of a TCP stream.
std::optional<Piece> piece_of(std::span<const std::byte> ip, std::size_t ip_header,
                              const Offload& offload) {
  if ((offload.piece_type & ~kPieceWithCongestionMark) != kPieceOfTcp4 ||
      byte_at(ip, 9) != IPPROTO_TCP || ip.size() < ip_header + kTcpBytes ||
      offload.segment_bytes == 0) {
    return std::nullopt;
  }
  const std::size_t headers = ip_header + 4 * std::size_t{byte_at(ip, ip_header + 12)} / 16;
  if (headers < ip_header + kTcpBytes || headers > ip.size()) {
    return std::nullopt;
  }
  const auto payload = static_cast<std::uint32_t>(ip.size() - headers);
  const std::uint32_t segments = (payload + offload.segment_bytes - 1) / offload.segment_bytes;
  return Piece{.headers = headers, .payload = payload, .segments = segments > 0 ? segments : 1};
}

// Fields of IP's header and TCP's that differ between the segments of a stream.
constexpr std::size_t kIpLength = 2;
constexpr std::size_t kIpNumber = 4;
constexpr std::size_t kIpSum = 10;
constexpr std::size_t kTcpSequence = 4;
constexpr std::size_t kTcpFlags = 13;
constexpr std::size_t kTcpSum = 16;
constexpr unsigned kAtTheEnd = 0x01U | 0x08U;  // FIN, PSH
constexpr unsigned kAtTheStart = 0x80U;        // CWR

/// Makes `ip`, which has the headers of the whole piece, those of the part that begins `offset`
/// bytes, or `before` segments, into it.
void head_part(std::span<std::byte> ip, std::uint32_t whole_bytes, std::uint32_t offset,
               std::uint32_t before, bool last) {
  const std::size_t tcp = ip_header_of(ip);
  const auto size = static_cast<std::uint32_t>(ip.size());
  set_big_endian(ip, kIpLength, 2, size);
  set_big_endian(ip, kIpNumber, 2, big_endian(ip, kIpNumber, 2) + before);
  set_big_endian(ip, kIpSum, 2, 0);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < tcp; i += 2) {
    sum += big_endian(ip, i, 2);
  }
  set_big_endian(ip, kIpSum, 2, ~folded(sum));
  set_big_endian(ip, tcp + kTcpSequence, 4, big_endian(ip, tcp + kTcpSequence, 4) + offset);
  const unsigned dropped = (last ? 0U : kAtTheEnd) | (before > 0 ? kAtTheStart : 0U);
  ip[tcp + kTcpFlags] &= std::byte(~dropped & 255U);
  // It holds the sum of what stands before TCP's header, of which the length changes; the rest is
  // summed up by the card that the packet never meets.
  set_big_endian(ip, tcp + kTcpSum, 2,
                 folded(big_endian(ip, tcp + kTcpSum, 2) + size + 0xFFFFU - whole_bytes));
}

}  // namespace

std::optional<Packet> read_packet(std::span<const std::byte> bytes, Host from, int hosts) {
  if (bytes.size() < kOffloadBytes + kIpBytes) {
    return std::nullopt;
  }
  Offload offload;
  std::memcpy(&offload, bytes.data(), sizeof offload);
  const auto ip = bytes.subspan(kOffloadBytes);
  const std::size_t header = ip_header_of(ip);
  if (byte_at(ip, 0) >> 4U != 4 || header < kIpBytes || header > ip.size() ||
      big_endian(ip, 2, 2) != ip.size()) {
    return std::nullopt;
  }
  const auto piece = offload.piece_type == kNoPiece
                         ? Piece{.payload = static_cast<std::uint32_t>(ip.size())}
                         : piece_of(ip, header, offload);
  const std::uint32_t source = big_endian(ip, 12, 4);
  const std::uint32_t target = big_endian(ip, 16, 4);
  const auto shaped = host_of(target, kShapedNet, hosts);
  const auto to = shaped ? shaped : host_of(target, kFreeNet, hosts);
  const auto says = host_of(source, shaped ? kShapedNet : kFreeNet, hosts);
  if (!piece || !to || says != from || *to == from) {
    return std::nullopt;
  }
  return Packet{
      .from = from,
      .to = *to,
      .shaped = shaped.has_value(),
      .segments = piece->segments,
      .wire_bytes = piece->payload + piece->segments * static_cast<std::uint32_t>(piece->headers),
      .bytes = {}};
}

std::vector<Packet> cut(const Packet& packet, std::span<const std::byte> bytes,
                        std::uint32_t segments) {
  if (packet.segments <= segments) {
    Packet whole = packet;
    whole.bytes.assign(bytes.begin(), bytes.end());
    return {std::move(whole)};
  }
  Offload offload;
  std::memcpy(&offload, bytes.data(), sizeof offload);
  const auto ip = bytes.subspan(kOffloadBytes);
  const Piece piece = *piece_of(ip, ip_header_of(ip), offload);
  std::vector<Packet> parts;
  parts.reserve((piece.segments + segments - 1) / segments);
  for (std::uint32_t before = 0; before < piece.segments; before += segments) {
    const std::uint32_t count = std::min(segments, piece.segments - before);
    const std::uint32_t offset = before * offload.segment_bytes;
    const std::uint32_t payload = std::min(piece.payload - offset, count * offload.segment_bytes);
    Offload own = offload;
    own.header_bytes = static_cast<std::uint16_t>(piece.headers);
    if (count == 1) {
      own.piece_type = kNoPiece;
      own.segment_bytes = 0;
    }
    Packet part = packet;
    part.segments = count;
    part.wire_bytes = payload + count * static_cast<std::uint32_t>(piece.headers);
    part.bytes.resize(kOffloadBytes + piece.headers + payload);
    std::memcpy(part.bytes.data(), &own, sizeof own);
    std::memcpy(part.bytes.data() + kOffloadBytes, ip.data(), piece.headers);
    std::memcpy(part.bytes.data() + kOffloadBytes + piece.headers,
                ip.data() + piece.headers + offset, payload);
    head_part(std::span(part.bytes).subspan(kOffloadBytes), static_cast<std::uint32_t>(ip.size()),
              offset, before, before + count == piece.segments);
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace sotto::netlab

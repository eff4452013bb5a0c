#include "packet.h"

#include <netinet/in.h>

#include <cstring>

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

/// A TCP stream's piece that the kernel left whole is charged as the segments it stands for.
std::optional<std::uint32_t> wire_bytes_of(std::span<const std::byte> ip, std::size_t ip_header,
                                           const Offload& offload) {
  const auto whole = static_cast<std::uint32_t>(ip.size());
  if (offload.piece_type == kNoPiece) {
    return whole;
  }
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
  return payload + (segments > 0 ? segments : 1) * static_cast<std::uint32_t>(headers);
}

}  // namespace

std::optional<Packet> read_packet(std::span<const std::byte> bytes, Host from, int hosts) {
  if (bytes.size() < kOffloadBytes + kIpBytes) {
    return std::nullopt;
  }
  Offload offload;
  std::memcpy(&offload, bytes.data(), sizeof offload);
  const auto ip = bytes.subspan(kOffloadBytes);
  const std::size_t header = 4 * std::size_t{byte_at(ip, 0) & 15U};
  if (byte_at(ip, 0) >> 4U != 4 || header < kIpBytes || header > ip.size() ||
      big_endian(ip, 2, 2) != ip.size()) {
    return std::nullopt;
  }
  const auto wire = wire_bytes_of(ip, header, offload);
  const std::uint32_t source = big_endian(ip, 12, 4);
  const std::uint32_t target = big_endian(ip, 16, 4);
  const auto shaped = host_of(target, kShapedNet, hosts);
  const auto to = shaped ? shaped : host_of(target, kFreeNet, hosts);
  const auto says = host_of(source, shaped ? kShapedNet : kFreeNet, hosts);
  if (!wire || !to || says != from || *to == from) {
    return std::nullopt;
  }
  return Packet{
      .from = from, .to = *to, .shaped = shaped.has_value(), .wire_bytes = *wire, .bytes = {}};
}

}  // namespace sotto::netlab

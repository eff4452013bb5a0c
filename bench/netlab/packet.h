// What the switch must know of a packet: where it goes, and what it weighs on the wire. Packets
// come from the nodes' kernels and are read with bounds all the same. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sotto::netlab {

/// Number of a node on the emulated network.
using Host = int;

/// Hosts 0 … 252 have the addresses 10.77.0.1 …: what the emulated links carry. 10.78.0.1 … reach
/// the same hosts past all links: there the nodes of a job meet, and nothing of that is counted.
inline constexpr int kMostHosts = 253;
inline constexpr std::uint32_t kShapedNet = 0x0A4D0000;
inline constexpr std::uint32_t kFreeNet = 0x0A4E0000;

/// struct virtio_net_hdr, which stands in front of each packet (IFF_VNET_HDR).
inline constexpr std::size_t kOffloadBytes = 10;

struct Packet {
  Host from = 0;
  Host to = 0;
  bool shaped = true;            ///< its addresses lie in the shaped net
  std::uint32_t wire_bytes = 0;  ///< with all headers from IP on, of all packets that it stands for
  std::vector<std::byte> bytes;  ///< as read from the device
};

/// What is said about the bytes that came from a host's device; nothing for what is no whole IPv4
/// packet between two of the hosts. Does not copy the bytes.
std::optional<Packet> read_packet(std::span<const std::byte> bytes, Host from, int hosts);

}  // namespace sotto::netlab

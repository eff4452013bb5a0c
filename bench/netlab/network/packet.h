// What the switch must know of a packet: where it goes, and what it weighs on the wire; and pieces
// of TCP streams, cut smaller. Packets come from the nodes' kernels and are read with bounds all
// the same. Pure functions; thread-safe.
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
  bool shaped = true;            ///< whether its addresses lie in the shaped net
  std::uint32_t segments = 1;    ///< packets that it stands for: a piece of a TCP stream, several
  std::uint32_t wire_bytes = 0;  ///< the bytes of all of them, with all headers from IP on
  std::vector<std::byte> bytes;  ///< what was read from the device
};

/// What is said about the bytes that came from a host's device; nothing for what is no whole IPv4
/// packet between two of the hosts. Does not copy the bytes.
std::optional<Packet> read_packet(std::span<const std::byte> bytes, Host from, int hosts);

/// The packet as pieces of at most `segments` segments, each with bytes of its own, in their order:
/// what a network card makes of a piece (RFC 9293; generic segmentation offload). `packet` is what
/// read_packet says of `bytes`. Requires segments ≥ 1.
std::vector<Packet> cut(const Packet& packet, std::span<const std::byte> bytes,
                        std::uint32_t segments);

}  // namespace sotto::netlab

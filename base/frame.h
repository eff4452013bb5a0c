// The frame: the one unit that travels between nodes. docs/wire.md has the grammar.
//
// A frame is a 64-byte little-endian header and a payload. Parsing is bounded: every length is
// checked before use, and a frame that breaks any rule yields a Status and nothing else. Pure
// functions over spans; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sotto/base/exchange.h>
#include <sotto/base/ids.h>
#include <sotto/base/status.h>

namespace sotto {

inline constexpr std::size_t kFrameHeaderBytes = 64;  ///< a header's length
/// A frame's first four bytes, "SOTO" on the wire.
inline constexpr std::uint32_t kFrameMagic = 0x4F544F53;
inline constexpr std::uint8_t kFrameVersion = 1;  ///< the only version so far

/// The fields of a frame's header; the functions below handle the checksum.
struct FrameHeader {
  std::uint64_t run_id = 0;      ///< one job; frames of another are refused
  std::uint16_t algorithm = 0;   ///< Algorithm's wire id
  std::uint16_t compressor = 0;  ///< Compressor's wire id
  Round round = 0;
  Rank sender = 0;
  /// Stamp of the sender's step settings, if a call has changed them since the start
  /// (optim/round_terms.h); 0: the settings that the nodes agreed on.
  std::uint32_t settings = 0;
  std::uint16_t phase = 0;     ///< exchange within the round
  std::uint32_t bucket = 0;    ///< part of the parameters
  std::uint64_t elements = 0;  ///< parameters that the payload encodes
  std::uint64_t payload_bytes = 0;
};

/// A parsed frame: the header, and the payload as a view into the received bytes.
struct FrameView {
  FrameHeader header;
  std::span<const std::byte> payload;
};

/// Writes header and checksum in front of a payload that already stands at
/// `frame[kFrameHeaderBytes …]`; `header.payload_bytes` says how long it is.
/// Requires frame.size() ≥ kFrameHeaderBytes + payload_bytes.
/// Returns the whole frame, cut to its length.
std::span<const std::byte> seal_frame(const FrameHeader& header, std::span<std::byte> frame);

/// Parses a whole frame; trailing bytes are an error. Fault::malformed says what is wrong.
Result<FrameView> parse_frame(std::span<const std::byte> bytes);

/// Total length that a header announces, read from its first 64 bytes without trusting the rest:
/// for transports that do not report a received length. Fault::malformed if the magic, the version
/// or the length (more than `capacity`) is wrong.
Result<std::size_t> announced_frame_bytes(std::span<const std::byte> bytes, std::size_t capacity);

/// The exchange that a frame's first 64 bytes say it belongs to, unchecked; zeros for fewer bytes.
ExchangeTag announced_tag(std::span<const std::byte> bytes);

/// Parameters that a sealed frame encodes, as its header says, unchecked; 0 for less than a header.
std::uint64_t announced_elements(std::span<const std::byte> frame);

}  // namespace sotto

#include <sotto/base/frame.h>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/xxh3.h>

namespace sotto {
namespace {

constexpr std::size_t kChecksumOffset = 56;
constexpr std::size_t kRoundOffset = 16;
constexpr std::size_t kPhaseOffset = 32;
constexpr std::size_t kBucketOffset = 36;
constexpr std::size_t kElementsOffset = 40;
constexpr std::size_t kPayloadBytesOffset = 48;

/// XXH3 of the payload, seeded with that of the header before the checksum: both are covered.
std::uint64_t checksum(std::span<const std::byte> frame) {
  return xxh3(frame.subspan(kFrameHeaderBytes), xxh3(frame.first(kChecksumOffset)));
}

Status malformed(const std::string& message) { return {Fault::malformed, message}; }

}  // namespace

std::span<const std::byte> seal_frame(const FrameHeader& header, std::span<std::byte> frame) {
  check(
      frame.size() >= kFrameHeaderBytes && frame.size() - kFrameHeaderBytes >= header.payload_bytes,
      "a frame's buffer holds its header and payload");
  const auto whole = frame.first(kFrameHeaderBytes + header.payload_bytes);
  ByteWriter out(whole);
  out.write(kFrameMagic);
  out.write(kFrameVersion);
  out.write(std::uint8_t{0});  // flags, reserved
  out.write(header.algorithm);
  out.write(header.run_id);
  check(out.position() == kRoundOffset, "the frame header's layout");
  out.write(header.round);
  out.write(header.sender);
  out.write(header.settings);
  check(out.position() == kPhaseOffset, "the frame header's layout");
  out.write(header.phase);
  out.write(header.compressor);
  check(out.position() == kBucketOffset, "the frame header's layout");
  out.write(header.bucket);
  check(out.position() == kElementsOffset, "the frame header's layout");
  out.write(header.elements);
  out.write(header.payload_bytes);
  check(out.position() == kChecksumOffset, "the frame header's layout");
  out.write(checksum(whole));
  return whole;
}

Result<std::size_t> announced_frame_bytes(std::span<const std::byte> bytes, std::size_t capacity) {
  if (bytes.size() < kFrameHeaderBytes) {
    return malformed(fmt::format("{} bytes are too few for a frame header of {}", bytes.size(),
                                 kFrameHeaderBytes));
  }
  ByteReader in(bytes);
  const auto magic = in.read<std::uint32_t>();
  const auto version = in.read<std::uint8_t>();
  if (magic != kFrameMagic) {
    return malformed(fmt::format("magic {:#010x} is not a frame's {:#010x}", magic, kFrameMagic));
  }
  if (version != kFrameVersion) {
    return malformed(fmt::format("frame version {} where {} is spoken", version, kFrameVersion));
  }
  ByteReader length(bytes.subspan(kPayloadBytesOffset));
  const auto payload_bytes = length.read<std::uint64_t>();
  if (capacity < kFrameHeaderBytes || payload_bytes > capacity - kFrameHeaderBytes) {
    return malformed(fmt::format("payload of {} bytes announced where a frame of {} fits",
                                 payload_bytes, capacity));
  }
  return kFrameHeaderBytes + static_cast<std::size_t>(payload_bytes);
}

ExchangeTag announced_tag(std::span<const std::byte> bytes) {
  if (bytes.size() < kFrameHeaderBytes) {
    return {};
  }
  return {.round = ByteReader(bytes.subspan(kRoundOffset)).read<Round>(),
          .phase = ByteReader(bytes.subspan(kPhaseOffset)).read<std::uint16_t>(),
          .bucket = ByteReader(bytes.subspan(kBucketOffset)).read<std::uint32_t>()};
}

std::uint64_t announced_elements(std::span<const std::byte> frame) {
  return frame.size() < kFrameHeaderBytes
             ? 0
             : ByteReader(frame.subspan(kElementsOffset)).read<std::uint64_t>();
}

Result<FrameView> parse_frame(std::span<const std::byte> bytes) {
  const auto announced = announced_frame_bytes(bytes, bytes.size());
  if (!announced) {
    return announced.status();
  }
  if (*announced != bytes.size()) {
    return malformed(
        fmt::format("{} bytes follow a frame of {}", bytes.size() - *announced, *announced));
  }
  FrameView view;
  ByteReader in(bytes);
  in.take(5);
  const auto flags = in.read<std::uint8_t>();
  view.header.algorithm = in.read<std::uint16_t>();
  view.header.run_id = in.read<std::uint64_t>();
  view.header.round = in.read<std::uint64_t>();
  view.header.sender = in.read<std::int32_t>();
  view.header.settings = in.read<std::uint32_t>();
  view.header.phase = in.read<std::uint16_t>();
  view.header.compressor = in.read<std::uint16_t>();
  view.header.bucket = in.read<std::uint32_t>();
  view.header.elements = in.read<std::uint64_t>();
  view.header.payload_bytes = in.read<std::uint64_t>();
  const auto stated = in.read<std::uint64_t>();
  if (flags != 0) {
    return malformed(fmt::format("reserved flags {:#x} are set", flags));
  }
  if (stated != checksum(bytes)) {
    return malformed("checksum does not match: the frame was damaged on its way");
  }
  if (view.header.sender < 0) {
    return malformed(fmt::format("sender {} is no rank", view.header.sender));
  }
  view.payload = bytes.subspan(kFrameHeaderBytes);
  return view;
}

}  // namespace sotto

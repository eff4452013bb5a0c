#include <sotto/observe/event_record.h>

#ifdef SOTTO_HAVE_ISAL
#include <isa-l/crc.h>
#endif

#include <bit>
#include <cstring>

#include <sotto/base/check.h>
#include <sotto/base/text.h>

namespace sotto {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

template <typename T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// Protocol buffers: how a field's value is written.
enum Wire : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) {
    bytes += static_cast<char>(value | 0x80U);
  }
  return bytes + static_cast<char>(value);
}

std::string key(std::uint32_t field, Wire wire) { return varint(field << 3U | wire); }

std::string text_field(std::uint32_t field, std::string_view bytes) {
  return key(field, kBytes) + varint(bytes.size()) + std::string(bytes);
}

/// Event's fields.
std::string event_head(double wall_time) { return key(1, kFixed64) + raw(wall_time); }
constexpr std::uint32_t kEventStep = 2;
constexpr std::uint32_t kFileVersion = 3;
constexpr std::uint32_t kSummary = 5;
/// Summary's, and those of its values.
constexpr std::uint32_t kValue = 1;
constexpr std::uint32_t kTag = 1;
constexpr std::uint32_t kSimpleValue = 2;

std::string framed(std::string_view data) {
  const std::string length = raw(std::uint64_t{data.size()});
  return length + raw(masked_crc32c(length)) + std::string(data) + raw(masked_crc32c(data));
}

}  // namespace

#ifdef SOTTO_HAVE_ISAL
bool has_event_records() { return true; }

std::uint32_t crc32c(std::string_view bytes) {
  // ISA-L takes what it does not write as not const, and leaves out both inversions.
  auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
  return ~::crc32_iscsi(data, static_cast<int>(bytes.size()), ~0U);
}
#else
bool has_event_records() { return false; }

std::uint32_t crc32c(std::string_view /*bytes*/) {
  check(false, "event records need a build with ISA-L");
  return 0;
}
#endif

std::uint32_t masked_crc32c(std::string_view bytes) {
  constexpr std::uint32_t kDelta = 0xa282ead8U;
  return std::rotr(crc32c(bytes), 15) + kDelta;
}

std::string version_record(double wall_time) {
  return framed(event_head(wall_time) + text_field(kFileVersion, "brain.Event:2"));
}

std::string scalars_record(double wall_time, std::int64_t step,
                           std::span<const EventScalar> scalars) {
  std::string summary;
  for (const EventScalar& scalar : scalars) {
    summary += text_field(kValue, text_field(kTag, printable(scalar.tag)) +
                                      key(kSimpleValue, kFixed32) + raw(scalar.value));
  }
  return framed(event_head(wall_time) + key(kEventStep, kVarint) +
                varint(static_cast<std::uint64_t>(step)) + text_field(kSummary, summary));
}

}  // namespace sotto

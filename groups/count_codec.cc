#include <sotto/groups/count_codec.h>

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/varint.h>

namespace sotto {
namespace {

/// b − a, of numbers of 32 bits that wrap round.
std::int32_t difference(std::int32_t b, std::int32_t a) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(b) - static_cast<std::uint32_t>(a));
}

/// Calls `each(place, change)`; false where the bytes are not those of changes of `counts` counts.
template <typename Each>
bool walk(std::span<const std::byte> bytes, std::size_t counts, const Each& each) {
  ByteReader in(bytes);
  const auto changes = read_varint(in);
  if (!changes || *changes > counts) {
    return false;
  }
  std::size_t next = 0;
  for (std::uint64_t k = 0; k < *changes; ++k) {
    const auto gap = read_varint(in);
    const auto change = read_varint(in);
    if (!gap || !change || *gap >= counts - next || *change == 0 ||
        *change > std::numeric_limits<std::uint32_t>::max()) {
      return false;
    }
    next += *gap;
    each(next, from_zigzag(static_cast<std::uint32_t>(*change)));
    ++next;
  }
  return in.finished();
}

}  // namespace

std::size_t max_change_bytes(std::size_t counts, std::size_t most) {
  const std::size_t changes = std::min(counts, most);
  constexpr std::size_t kLongest = kMostVarint32Bytes;
  return kMostVarintBytes + std::min(counts, kLongest * changes) + kLongest * changes;
}

EncodedChanges encode_changes(std::span<const std::int32_t> before,
                              std::span<const std::int32_t> now, std::span<std::byte> out) {
  std::size_t changes = 0;
  for (std::size_t k = 0; k < now.size(); ++k) {
    changes += now[k] != before[k] ? 1U : 0U;
  }
  ByteWriter writer(out);
  write_varint(changes, writer);
  std::size_t next = 0;
  for (std::size_t k = 0; k < now.size(); ++k) {
    if (now[k] != before[k]) {
      write_varint(k - next, writer);
      write_varint(zigzag(difference(now[k], before[k])), writer);
      next = k + 1;
    }
  }
  return {.changes = changes, .bytes = writer.position()};
}

Status check_changes(std::span<const std::byte> bytes, std::size_t counts) {
  if (!walk(bytes, counts, [](std::size_t, std::int32_t) {})) {
    return {Fault::malformed,
            fmt::format("{} bytes are no changes of {} counts", bytes.size(), counts)};
  }
  return {};
}

void add_changes(std::span<const std::byte> bytes, std::span<std::int32_t> counts) {
  (void)walk(bytes, counts.size(), [&](std::size_t place, std::int32_t change) {
    counts[place] = static_cast<std::int32_t>(static_cast<std::uint32_t>(counts[place]) +
                                              static_cast<std::uint32_t>(change));
  });
}

}  // namespace sotto

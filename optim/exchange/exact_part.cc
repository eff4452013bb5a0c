#include <sotto/optim/exchange/exact_part.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <sotto/base/bytes.h>
#include <sotto/base/varint.h>

namespace sotto {
namespace {

using Length = std::uint32_t;

/// Calls `each(number, value)` for the elements of a part; false where it is malformed.
template <typename Each>
bool walk(std::span<const std::byte> part, std::size_t elements, const Each& each) {
  if (part.empty()) {
    return true;
  }
  ByteReader in(part);
  const std::uint64_t count = read_varint(in).value_or(0);
  if (count == 0 || count > elements || in.remaining() / sizeof(float) < count) {
    return false;
  }
  ByteReader values(part.last(count * sizeof(float)));
  ByteReader gaps(part.subspan(in.position(), in.remaining() - values.remaining()));
  std::size_t next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t gap = read_varint(gaps).value_or(0);
    if (gap == 0 || gap > elements - next) {
      return false;
    }
    next += gap;
    each(next - 1, values.read<float>());
  }
  return gaps.finished();
}

}  // namespace

ExactElements ExactElements::in(const Chunk& chunk) const {
  const auto first = std::ranges::lower_bound(at, chunk.offset);
  const auto last = std::lower_bound(first, at.end(), chunk.offset + chunk.size);
  const auto offset = static_cast<std::size_t>(first - at.begin());
  const auto size = static_cast<std::size_t>(last - first);
  return {at.subspan(offset, size), values.subspan(offset, size)};
}

std::size_t max_exact_part_bytes(std::size_t elements) {
  return elements == 0 ? 0 : kMostVarintBytes + elements * (1 + sizeof(float)) + sizeof(Length);
}

std::size_t append_exact_part(std::span<const float> values, std::span<std::byte> payload,
                              std::size_t bytes) {
  ByteWriter out(payload.subspan(bytes));
  const auto sent = [](float value) { return value != 0; };
  if (const auto count = std::ranges::count_if(values, sent); count > 0) {
    write_varint(static_cast<std::uint64_t>(count), out);
    std::size_t next = 0;
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (sent(values[k])) {
        write_varint(k + 1 - next, out);
        next = k + 1;
      }
    }
    for (const float value : values) {
      if (sent(value)) {
        out.write(value);
      }
    }
  }
  out.write(static_cast<Length>(out.position()));
  return bytes + out.position();
}

std::span<const std::byte> before_exact_part(std::span<const std::byte> payload) {
  if (payload.size() < sizeof(Length)) {
    return {};
  }
  ByteReader end(payload.last(sizeof(Length)));
  const auto length = end.read<Length>();
  const auto before = payload.first(payload.size() - sizeof length);
  return before.first(length <= before.size() ? before.size() - length : 0);
}

Result<std::span<const std::byte>> add_exact_part(std::span<const std::byte> payload,
                                                  std::span<float> values) {
  const auto before = before_exact_part(payload);
  const std::size_t behind = payload.size() - before.size();
  if (behind < sizeof(Length)) {
    return Status{Fault::malformed, "it is too short for elements in full precision"};
  }
  const auto part = payload.subspan(before.size(), behind - sizeof(Length));
  if (ByteReader(payload.last(sizeof(Length))).read<Length>() != part.size()) {
    return Status{Fault::malformed, "its elements in full precision are longer than itself"};
  }
  bool finite = true;
  const auto look = [&](std::size_t /*number*/, float value) { finite &= std::isfinite(value); };
  if (!walk(part, values.size(), look)) {
    return Status{Fault::malformed, "its elements in full precision do not fit together"};
  }
  if (!finite) {
    return Status{Fault::non_finite, "an element in full precision is not finite"};
  }
  walk(part, values.size(), [&](std::size_t number, float value) { values[number] += value; });
  return before;
}

}  // namespace sotto

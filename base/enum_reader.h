// Enumerations in bytes that we did not make. A pure function; thread-safe.
#pragma once

#include <optional>
#include <type_traits>

#include <sotto/base/bytes.h>

namespace sotto {

/// The next number as an enumerator from `first` to `last`; none: it is no such one, or the reader
/// has failed. `Number` is its type in the bytes.
template <typename Enum, WireScalar Number = std::underlying_type_t<Enum>>
std::optional<Enum> read_enum(ByteReader& in, Enum first, Enum last) {
  const auto number = in.read<Number>();
  const bool known =
      !in.failed() && number >= static_cast<Number>(first) && number <= static_cast<Number>(last);
  return known ? std::optional(static_cast<Enum>(number)) : std::nullopt;
}

}  // namespace sotto

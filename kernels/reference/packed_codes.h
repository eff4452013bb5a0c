// Single codes in the layout that kPackGroup (../ops.h) describes. Pure functions on views.
#pragma once

#include <algorithm>

#include "../ops.h"

namespace sotto {

/// Where bit p of an element's code lies: bit `shift` of byte `byte + p × plane_bytes`.
struct CodePlace {
  std::size_t byte = 0;
  std::size_t plane_bytes = 0;
  unsigned shift = 0;
};

inline CodePlace code_place(std::size_t count, int bits, std::size_t element) {
  const std::size_t group = element / kPackGroup;
  const std::size_t in_group = element % kPackGroup;
  const std::size_t group_size = std::min(kPackGroup, count - group * kPackGroup);
  return {group * 8 * static_cast<std::size_t>(bits) + in_group / 8, (group_size + 7) / 8,
          static_cast<unsigned>(in_group % 8)};
}

/// Sets the code of `element` of `count`, whose bits must be zero so far.
inline void write_code(std::span<std::byte> codes, std::size_t count, int bits, std::size_t element,
                       std::uint32_t code) {
  if (bits == 8) {
    codes[element] = static_cast<std::byte>(code);
    return;
  }
  const CodePlace place = code_place(count, bits, element);
  for (unsigned plane = 0; plane < static_cast<unsigned>(bits); ++plane) {
    codes[place.byte + plane * place.plane_bytes] |=
        static_cast<std::byte>(((code >> plane) & 1U) << place.shift);
  }
}

inline std::uint32_t read_code(std::span<const std::byte> codes, std::size_t count, int bits,
                               std::size_t element) {
  if (bits == 8) {
    return std::to_integer<std::uint32_t>(codes[element]);
  }
  const CodePlace place = code_place(count, bits, element);
  std::uint32_t code = 0;
  for (unsigned plane = 0; plane < static_cast<unsigned>(bits); ++plane) {
    const auto byte = std::to_integer<std::uint32_t>(codes[place.byte + plane * place.plane_bytes]);
    code |= ((byte >> place.shift) & 1U) << plane;
  }
  return code;
}

}  // namespace sotto

// `none`: float32 as it is. Exact, so it meets every contract; the baseline of every comparison.
//
// Payload: the elements as little-endian float32.
// Thread safety and ownership: see Compressor. Allocates nothing.
#pragma once

#include <memory>

#include <sotto/compress/compressor.h>

namespace sotto {

inline constexpr std::uint16_t kNoneWireId = 1;  ///< the compressor's number in frames

/// Makes `none`, which has no settings.
std::unique_ptr<Compressor> make_none(const Ops& ops = host_ops());

}  // namespace sotto

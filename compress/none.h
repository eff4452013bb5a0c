// `none`: float32 as it is. Exact, so it meets every contract; the baseline of every comparison.
//
// Payload: the elements as little-endian float32.
// Thread safety and ownership: see Compressor. Allocates nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>

namespace sotto {

inline constexpr std::uint16_t kNoneWireId = 1;  ///< the compressor's number in frames

/// Makes `none`, which has no settings.
std::unique_ptr<Compressor> make_none(const Ops& ops = host_ops());

/// y ← C, where `bytes` is a whole encoding of y.size() elements that has not been checked: one
/// pass less than adding it to zeros. Fault::malformed leaves y untouched; with Fault::non_finite
/// it may hold anything. `ops` are those of y's memory.
Status decode_none(std::span<const std::byte> bytes, std::span<float> y,
                   const Ops& ops = host_ops());

}  // namespace sotto

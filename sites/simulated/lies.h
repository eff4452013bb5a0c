// What a site that lies does to the messages that it lets go (fault_plan.h). It keeps the rules of
// the grammar, so that nothing of it is refused.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <sotto/compress/compressor.h>
#include <sotto/sites/simulated/fault_plan.h>

namespace sotto::sites {

/// What goes out in place of a message of a site whose models have `dimension` elements; nothing:
/// it is held back.
std::optional<std::vector<std::byte>> lie_about(LieKind kind, std::span<const std::byte> message,
                                                std::size_t dimension, Compressor& compressor);

/// The mass that a parcel of push-sum says to hold; 0 for other messages.
double mass_in(std::span<const std::byte> message, std::size_t dimension);

}  // namespace sotto::sites

// What a site that lies does to the messages that it lets go (lie_plan.h). It keeps the rules of
// the grammar, so that nothing of it is refused; but for one that sends random bytes.
//
// Thread-safe but for the stream.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/compress/compressor.h>
#include <sotto/sites/core/mixing_kind.h>
#include <sotto/sites/faults/lie_plan.h>

namespace sotto {

/// What the sites of a run have in common, whose messages are changed.
struct MessageForm {
  std::size_t dimension = 0;  ///< elements of the model
  sites::MixingKind exchange = sites::MixingKind::push_sum;
  Compressor* compressor = nullptr;
};

/// What goes out in place of a message; empty: it is held back. Whatever is drawn comes from
/// `random`.
std::vector<std::vector<std::byte>> lie_about(const PlannedLie& lie,
                                              std::span<const std::byte> message,
                                              const MessageForm& form, RandomStream& random);

/// The mass that a parcel of push-sum says to hold; 0 for other messages.
double mass_in(std::span<const std::byte> message, std::size_t dimension);

}  // namespace sotto

// What a site is at, for those who watch it.
//
// Plain values. Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace sotto {

/// What a site is at.
enum class SitePhase : std::uint8_t {
  starting,  ///< it has not looked for its peers yet
  joining,   ///< it waits for peers, or for a model
  training,  ///< it takes gradients
  waiting,   ///< it waits for what others send in a round
  relaying,  ///< it sends no gradients of its own any more, and passes on those of others
  done,      ///< it has ended in good order
  failed,    ///< it has ended with a fault
};

/// The name in reports and metrics: "starting".
std::string_view name_of(SitePhase phase);

/// All phases.
std::span<const SitePhase> site_phases();

}  // namespace sotto

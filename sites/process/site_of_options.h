// From what a site is told to do to the state machine that does it (sites/core/site.h).
//
// Pure functions, but for what is drawn; thread-safe.
#pragma once

#include <cstddef>
#include <span>

#include <sotto/base/parameter_layout.h>
#include <sotto/comm/channels.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/process/site_options.h>

namespace sotto {

/// All of the setup but incarnation and life, which are of a process. `parameters` are the initial
/// model; the setup has a view of them. Throws Error for options that are refused.
sites::SiteSetup site_setup(const SiteOptions& options, const ParameterLayout& layout,
                            std::span<float> parameters);

/// The options with key and list as they are in a run by roster. Throws Error for options that such
/// a run refuses.
SiteOptions with_roster(SiteOptions options);

/// A secret from which a process draws its masks (secure_sum.h), from the system's randomness.
sites::Secret32 draw_secret();

/// The channels of a site whose messages are at most so long.
ChannelOptions site_channels(const SiteOptions& options, std::size_t max_message_bytes);

}  // namespace sotto

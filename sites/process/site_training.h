// How a site trains, from the settings that all runs share: the exchange that an algorithm is
// between sites, its steps, and whether it only takes. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include <sotto/sites/core/mixing_kind.h>
#include <sotto/sites/process/site_options.h>
#include <sotto/trainers/settings/optimizer_settings.h>

namespace sotto {

/// The algorithms that exchange in this way, in words.
std::string algorithms_of(sites::MixingKind exchange);

/// Whether nodes with a model each exchange by an algorithm of this name.
bool is_exchange(std::string_view algorithm);

/// Sets exchange, compressor, rule and consensus step size to what algorithm and compressor name;
/// `secure_sum` hides the models that dpsgd averages. Throws Error for an algorithm that sites do
/// not have, and a compressor or secure sum that it does not take.
void take_exchange(const OptimizerSettings& settings, bool secure_sum, SiteOptions& options);

/// Sets communication interval, step rule, outer step rule, rounds and seed. `rounds` is the length
/// of the site's run; 0: it has no end, and no schedule that needs one. Throws Error.
void take_steps(const OptimizerSettings& settings, Round rounds, std::uint64_t seed,
                SiteOptions& options);

/// Makes the site an observer, which takes what comes and sends nothing. Throws Error for an
/// exchange whose neighbours must all send.
void take_observer(SiteOptions& options);

}  // namespace sotto

// Which setups of a site are refused.
//
// Pure functions; thread-safe.
#pragma once

#include <vector>

#include <sotto/sites/core/mass_rule.h>
#include <sotto/sites/core/pull_bound.h>
#include <sotto/sites/core/site_setup.h>

namespace sotto::sites {

/// Throws Error for numbers that cannot work together.
void admit_bounds(const MassRule& mass, const PullLimits& pull, double mass_cap = 1024);

/// Throws Error for names that cannot be, or one-sided trust with gossip.
void admit_peers(const std::vector<SitePeer>& peers, MixingKind kind);

/// Throws Error as the constructor of Site, but for what make_mixing finds out (make_mixing.h).
void admit(const SiteSetup& setup);

}  // namespace sotto::sites

// The mixing of a site, by its setup.
//
// A building block of Site, not for users.
#pragma once

#include <memory>

#include <sotto/sites/core/mixing/mixing.h>
#include <sotto/sites/core/site_setup.h>

namespace sotto::sites {

/// The mixing of a setup that admit (site_admission.h) has let pass. Step rule, compressor and the
/// secret of sums move into it. Throws Error where no consensus step size can be derived, and for a
/// robust rule that is none.
std::unique_ptr<Mixing> make_mixing(SiteSetup& setup);

}  // namespace sotto::sites

// The mixing of a site, and what only one kind of mixing can do.
//
// A building block of Site, not for users. A plain value.
#pragma once

#include <memory>

#include <sotto/sites/core/mixing/hidden_mean.h>
#include <sotto/sites/core/mixing/mass_flow.h>
#include <sotto/sites/core/mixing/mixing.h>
#include <sotto/sites/core/mixing/public_copies.h>
#include <sotto/sites/core/site_setup.h>

namespace sotto::sites {

/// The pointers are null in other kinds, and else point into the model.
struct SiteMixing {
  std::unique_ptr<Mixing> model;
  MassFlow* mass = nullptr;        ///< push_sum
  PublicCopies* copies = nullptr;  ///< gossip
  HiddenMean* mean = nullptr;      ///< secure_mean

  /// The sums by which parcels are taken in; null: none are made.
  SecureSum* sum() const { return mean == nullptr ? nullptr : &mean->sum(); }
};

/// The mixing of a setup that admit (site_admission.h) has let pass. Step rule, compressor and the
/// secret of sums move into it. Throws Error where no consensus step size can be derived, and for a
/// robust rule that is none.
SiteMixing make_mixing(SiteSetup& setup);

}  // namespace sotto::sites

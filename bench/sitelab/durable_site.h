// What the state of a real site says once its process has ended, and where the mass of all of them
// is. The arithmetic is the simulator's (sites/faults/mass_accounts.h).
//
// Pure functions but for reading files; one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/site.h>
#include <sotto/sites/faults/fault_plan.h>

#include "site_files.h"

namespace sotto::sitelab {

/// The state of a site, as it would go on from it.
struct DurableSite {
  Rank site = -1;
  sites::SiteState state;
  std::vector<Rank> listed;
  std::vector<sites::PeerState> peers;
  std::vector<float> parameters = {};
  std::size_t bytes = 0;
};

/// Reads it as `sotto node` does, whose files those of `plan` are. None: there is no state. A fault
/// when it does not load.
Result<std::optional<DurableSite>> read_durable(const FaultPlan& plan, const SiteFiles& files,
                                                Rank site);

struct MassAudit {
  double minted = 0;
  double returned = 0;  ///< so that masses come back to 1
  double held = 0;
  double under_way = 0;
  double lost = 0;  ///< neither held nor under way; 0 where no state was given up
  /// The largest error of one site: |ω + given up + Σ made − Σ applied − minted|.
  double worst_error = 0;
};

/// Adds up what all sites hold. `worst_error` covers the sites none of whose streams has begun
/// anew, and says nothing where there is none.
MassAudit audit_mass(const std::vector<DurableSite>& durable, int sites);

}  // namespace sotto::sitelab

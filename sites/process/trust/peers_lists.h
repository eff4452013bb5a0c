// The lists of peers of a federation's sites: those of a new one, and those of one that grows.
// Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sotto/comm/trust/keys.h>
#include <sotto/sites/process/trust/trust_plan.h>

namespace sotto {

/// A list of peers as a site has it.
struct PresentList {
  std::string path;  ///< path of the file, for messages
  std::string text;
};

/// The list of peers of each site: itself, and those with which it has an edge. `keys` has the
/// public key of each site. Throws Error, in the name of `path`, for what no list takes: an address
/// that is none or another site's, a key that is there twice.
std::vector<std::string> peers_lists(const TrustPlan& plan, const std::string& path,
                                     const std::vector<PublicKey>& keys);

/// The lists after sites have joined. `present` has the list of each site that is there already,
/// `keys` the public key of each that is new. A list that is there keeps its text, its keys and its
/// edges, and gets a line for each new site with which `plan` gives it an edge; one without such an
/// edge, or with that line already, comes back as it is. Edges of `plan` between sites that are
/// there already change nothing. Throws Error as above, in the name of the list where that is at
/// fault: it has no line for its own site, another address for it than `plan`, or lacks a column
/// that a new line needs.
std::vector<std::string> grown_lists(const TrustPlan& plan, const std::string& path,
                                     const std::vector<std::optional<PresentList>>& present,
                                     const std::vector<PublicKey>& keys);

}  // namespace sotto

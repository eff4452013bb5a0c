// The hosts on which sites run, as far as their addresses say, and ports for their monitors.
// Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/sites/process/trust/trust_plan.h>

namespace sotto {

/// The host of a site with these addresses, "HOST:PORT" with spaces between them: that of the
/// first, without its port. "localhost" for each that is loopback; empty for none.
std::string host_of_addresses(std::string_view addresses);

/// Whether one of these addresses is `endpoint`, "HOST:PORT"; all names of loopback are one host.
bool listens_at(std::string_view addresses, std::string_view endpoint);

/// A port for the monitor of each site. `present` has the ports that some have already, which stay.
/// Others get the first from `first` on that no other site on their host has, and at which none of
/// these listens. A site without an address may be on the host of any other that is loopback.
/// Throws Error beyond 65535.
std::vector<int> monitor_ports(const TrustPlan& plan, int first,
                               const std::vector<std::optional<int>>& present);

}  // namespace sotto

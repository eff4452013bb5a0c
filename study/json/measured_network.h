// A measured network as JSON. Pure functions; thread-safe.
#pragma once

#include <sotto/base/json.h>
#include <sotto/study/measure/exchange_probe.h>

namespace sotto::study {

/// The edges and hosts, as `sotto bench exchange --json` has them.
Json network_json(const MeasuredNetwork& network);
/// The network that network_json wrote.
MeasuredNetwork network_in(const Json& json);

}  // namespace sotto::study

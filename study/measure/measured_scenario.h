// Turns measurements between hosts into a scenario. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include <sotto/study/measure/exchange_probe.h>

namespace sotto::study {

/// A scenario file with this network, which `sotto simulate` and `sotto plan` read. Where no edge
/// was measured, the median one lies. `gradient` is the time of one, in the words of such a file.
std::string scenario_text(const MeasuredNetwork& network, std::string_view transport,
                          std::string_view gradient);

}  // namespace sotto::study

#include <sotto/sim/link_presets.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>

namespace sotto {
namespace {

constexpr double kMbit = 1e6 / 8;
constexpr double kGbit = 1e9 / 8;
constexpr SimTime kMicrosecond = 1'000;
constexpr SimTime kMillisecond = 1'000'000;

constexpr std::array<LinkPreset, 9> kPresets = {{
    {"datacenter", "25 Gbit/s in one hall", 25 * kGbit, 20 * kMicrosecond},
    {"lan", "1 Gbit/s in one building", kGbit, 100 * kMicrosecond},
    {"wifi", "hosts on a wireless LAN: 100 Mbit/s each", 100 * kMbit, 3 * kMillisecond,
     2 * kMillisecond, 1e-4, true},
    {"metro", "1 Gbit/s across a city", kGbit, 2 * kMillisecond},
    {"wan", "100 Mbit/s across a country", 100 * kMbit, 15 * kMillisecond, kMillisecond},
    {"transatlantic", "100 Mbit/s across an ocean", 100 * kMbit, 45 * kMillisecond,
     2 * kMillisecond},
    {"dsl", "homes: 10 Mbit/s each, as their upload", 10 * kMbit, 20 * kMillisecond,
     3 * kMillisecond, 0, true},
    {"4g", "phones: 10 Mbit/s each, and uneven", 10 * kMbit, 30 * kMillisecond, 10 * kMillisecond,
     1e-4, true},
    {"satellite", "20 Mbit/s by way of a geostationary satellite", 20 * kMbit, 300 * kMillisecond,
     10 * kMillisecond, 1e-5},
}};

}  // namespace

std::span<const LinkPreset> link_presets() { return kPresets; }

const LinkPreset& link_preset(std::string_view name) {
  const auto* found = std::find_if(kPresets.begin(), kPresets.end(),
                                   [&](const LinkPreset& preset) { return preset.name == name; });
  if (found == kPresets.end()) {
    const auto names = names_of(kPresets);
    throw Error(fmt::format("'{}' is no link{} there are {}", name, did_you_mean(name, names),
                            fmt::join(names, ", ")));
  }
  return *found;
}

}  // namespace sotto

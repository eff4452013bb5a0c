// How often each kind of fault happened, as JSON and as a table. Pure functions.
#pragma once

#include <cstdint>
#include <span>

#include <sotto/console/output.h>

namespace sotto::cli {

/// By kind, as fault_kinds() numbers them; kinds that did not happen are left out.
Json injected_json(std::span<const std::uint64_t> injected);
/// Shows them, and returns their sum.
std::uint64_t show_injected(std::span<const std::uint64_t> injected, const console::Output& output);

}  // namespace sotto::cli

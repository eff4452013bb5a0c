// How often each kind of fault happened, as a table.
#pragma once

#include <cstdint>
#include <span>

#include <sotto/console/output.h>

namespace sotto::cli {

/// Shows how often each kind of fault happened, as fault_kinds() numbers them, and returns the sum.
std::uint64_t show_injected(std::span<const std::uint64_t> injected, const console::Output& output);

}  // namespace sotto::cli

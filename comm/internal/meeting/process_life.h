// Whether a process of this machine still runs, as far as the system says.
//
// Pure but for the system's tables; thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace sotto::internal {

enum class Life {
  lives,
  gone,
  unknown,  ///< there is a process of this number, and its entry in /proc is hidden
};

/// The time when a process started, in the kernel's ticks, which tells it from a later one of its
/// number. None: it does not run, or the system does not say.
std::optional<std::uint64_t> start_of(std::uint64_t pid,
                                      const std::filesystem::path& proc = "/proc");

/// The fate of the process that had this number and start. Where /proc is mounted with hidepid, it
/// does not show the processes of other users.
Life life_of(std::uint64_t pid, std::uint64_t started, const std::filesystem::path& proc = "/proc");

}  // namespace sotto::internal

// Limits that the system sets to a process, in words. Thread-safe.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace sotto {

/// "RLIMIT_NPROC (`ulimit -u`, 8)" and the like, in units of `unit`; empty where there is no such
/// limit.
std::string limit_text(__rlimit_resource resource, std::string_view name, char flag,
                       rlim_t unit = 1);

/// Opens and closes `count` descriptors at once. Throws Shortage where a limit on open files is
/// met: for libraries that end the process when a file cannot be opened.
void require_open_files(std::size_t count, std::string_view purpose);

}  // namespace sotto

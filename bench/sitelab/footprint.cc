#include "footprint.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace sotto::sitelab {

std::optional<Footprint> footprint_of(pid_t process) {
  const std::filesystem::path proc = fmt::format("/proc/{}", process);
  std::ifstream file(proc / "statm");
  double pages = 0;
  double resident = 0;
  if (!(file >> pages >> resident) || resident == 0) {
    return std::nullopt;
  }
  std::error_code code;
  double descriptors = 0;
  for (std::filesystem::directory_iterator entry(proc / "fd", code), end; !code && entry != end;
       entry.increment(code)) {
    ++descriptors;
  }
  return Footprint{.resident_bytes = resident * static_cast<double>(::sysconf(_SC_PAGESIZE)),
                   .descriptors = descriptors};
}

}  // namespace sotto::sitelab

#include "injected.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/sites/simulated/fault_plan.h>

namespace sotto::cli {

std::uint64_t show_injected(std::span<const std::uint64_t> injected,
                            const console::Output& output) {
  std::vector<std::vector<std::string>> rows;
  std::uint64_t all = 0;
  for (const auto& [kind, times] : faults_that_happened(injected)) {
    all += times;
    rows.push_back({std::string(kind->name), fmt::to_string(times), std::string(kind->summary)});
  }
  if (!rows.empty()) {
    output.table({"fault", "times", "what it is"}, rows);
    output.line("");
  }
  return all;
}

}  // namespace sotto::cli

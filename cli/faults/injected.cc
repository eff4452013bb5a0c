#include "injected.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/sites/simulated/fault_plan.h>

namespace sotto::cli {

Json injected_json(std::span<const std::uint64_t> injected) {
  Json counts = Json::object();
  for (const FaultKindInfo& kind : fault_kinds()) {
    if (const std::uint64_t count = injected[static_cast<std::size_t>(kind.kind)]; count > 0) {
      counts[std::string(kind.name)] = count;
    }
  }
  return counts;
}

std::uint64_t show_injected(std::span<const std::uint64_t> injected, const Output& output) {
  std::vector<std::vector<std::string>> rows;
  std::uint64_t all = 0;
  for (const FaultKindInfo& kind : fault_kinds()) {
    const std::uint64_t count = injected[static_cast<std::size_t>(kind.kind)];
    all += count;
    if (count > 0) {
      rows.push_back({std::string(kind.name), fmt::to_string(count), std::string(kind.summary)});
    }
  }
  if (!rows.empty()) {
    output.table({"fault", "times", "what it is"}, rows);
    output.line("");
  }
  return all;
}

}  // namespace sotto::cli

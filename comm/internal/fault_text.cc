#include "fault_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sotto::internal {

std::string describe(const ExchangeTag& tag) {
  return fmt::format("round {}, phase {}, bucket {}", tag.round, tag.phase, tag.bucket);
}

std::string list_ranks(std::span<const Rank> ranks) {
  return fmt::format("{}", fmt::join(ranks, ", "));
}

Status not_come(std::span<const Rank> ranks, const Deadline& deadline) {
  return deadline.stopped()
             ? Status(Fault::stopped,
                      fmt::format("stopped while waiting for node {}", list_ranks(ranks)))
             : Status(Fault::deadline,
                      fmt::format("node {} did not come in time", list_ranks(ranks)));
}

}  // namespace sotto::internal

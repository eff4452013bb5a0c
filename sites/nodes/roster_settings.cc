#include <sotto/sites/nodes/roster_settings.h>

#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/comm/shared_store.h>
#include <sotto/comm/trust/key_file.h>
#include <sotto/sites/nodes/incarnation.h>

namespace sotto {
namespace {

constexpr std::size_t kMostSeeds = 64;
constexpr double kLongestLeave = 3600;  // seconds

std::vector<std::string> split_seeds(const std::string& text) {
  if (names_store(text) && text.find(',') == std::string::npos) {
    check_shared_store("seeds", text);
    return {text};
  }
  std::vector<std::string> seeds;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    seeds.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  for (const std::string& seed : seeds) {
    if (seed.find(':') == std::string::npos || names_store(seed) || seeds.size() > kMostSeeds) {
      refuse(
          "seeds", text,
          fmt::format("HOST:PORT of one node or more, with commas between them, at most {}; or a "
                      "store alone, file:DIR, redis://HOST:PORT/PREFIX or torch://HOST:PORT/PREFIX",
                      kMostSeeds));
    }
  }
  return seeds;
}

}  // namespace

std::string node_range_rule() {
  return fmt::format(
      "MIN:MAX, the fewest nodes with which training begins and the most that are let in, or one "
      "number for both: 1 to {}, with allreduce and qmean 1 to {}",
      kMostRosterNodes, kMostNodesOfOneModel);
}

std::optional<NodeRange> parse_node_range(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto least = parse_number<std::size_t>(text.substr(0, colon), 1, kMostRosterNodes);
  const auto most = colon == std::string_view::npos
                        ? least
                        : parse_number<std::size_t>(text.substr(colon + 1), 1, kMostRosterNodes);
  if (!least || !most || *least > *most) {
    return std::nullopt;
  }
  return NodeRange{.least = *least, .most = *most};
}

RosterOptions options_of(const RosterSettings& o) {
  const auto range = parse_node_range(o.nodes);
  if (!range) {
    refuse("nodes", o.nodes, node_range_rule());
  }
  if (!(o.leave_within >= 0 && o.leave_within <= kLongestLeave)) {
    refuse("leave_within", fmt::to_string(o.leave_within), "0 to 3600 seconds");
  }
  RosterOptions options{.least = range->least, .most = range->most, .seeds = split_seeds(o.seeds)};
  if (!o.key.empty()) {
    options.key = RunKey(read_key_file(o.key));
  }
  options.insecure = o.insecure;
  options.leave_patience = std::chrono::milliseconds(std::llround(o.leave_within * 1000));
  return options;
}

std::string default_node_name(std::string_view added) {
  std::array<char, 64> host{};
  const bool known = ::gethostname(host.data(), host.size() - 1) == 0 && host[0] != '\0';
  return fmt::format("{}{}{}-{:08x}", known ? host.data() : "node", added.empty() ? "" : "-", added,
                     static_cast<std::uint32_t>(draw_incarnation()));
}

}  // namespace sotto

#include "naming.h"

#include <algorithm>
#include <array>
#include <sstream>

#include <fmt/format.h>

namespace sotto::sitelab {
namespace {

using namespace std::string_view_literals;

constexpr auto kTakes = std::to_array({"takes"sv, "sends-nothing"sv});
constexpr auto kSwallows = std::to_array({"confirms-nothing"sv, "sends-nothing"sv, "takes"sv});
constexpr auto kMints = std::to_array({"mints"sv});
constexpr auto kKills = std::to_array({"barred"sv, "spoils"sv});
constexpr auto kLate = std::to_array({"late"sv});
constexpr auto kAhead = std::to_array({"far-ahead"sv});
constexpr auto kStints = std::to_array({"takes"sv});
constexpr auto kDenies = std::to_array({"confirms-nothing"sv});
constexpr auto kBreaksRules = std::to_array({"offence"sv, "broke-rule"sv});

bool is_event_of(const std::string& event, std::span<const std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return event == fmt::format("peer-{}", word); });
}

/// Whether a line of metrics says this of the peer: its state has one of the words, or pulls of it
/// were cut.
bool says(const std::string& line, Rank peer, std::span<const std::string_view> words) {
  const std::string label = fmt::format("{{peer=\"{}\"", site_name(peer));
  if (line.find(label) == std::string::npos || line.ends_with(" 0")) {
    return false;
  }
  return std::ranges::any_of(words, [&](std::string_view word) {
    return (line.starts_with("sotto_peer_state{") &&
            line.find(fmt::format("reason=\"{}\"", word)) != std::string::npos) ||
           (word == "barred" && (line.starts_with("sotto_peer_barred{") ||
                                 line.starts_with("sotto_peer_pulls_cut_total{")));
  });
}

/// Whether an event blames a peer for what no honest site does. One that is slow may be late.
bool accuses(const std::string& event) {
  return std::ranges::any_of(lie_kinds(), [&](const LieKindInfo& lie) {
    return lie.kind != LieKind::late && is_event_of(event, words_for(lie.kind));
  });
}

}  // namespace

std::span<const std::string_view> words_for(LieKind kind) {
  switch (kind) {
    case LieKind::takes:
      return kTakes;
    case LieKind::swallows:
      return kSwallows;
    case LieKind::mints:
      return kMints;
    case LieKind::kills:
      return kKills;
    case LieKind::late:
      return kLate;
    case LieKind::ahead:
      return kAhead;
    case LieKind::stints:
      return kStints;
    case LieKind::denies:
      return kDenies;
    case LieKind::garbles:
    case LieKind::floods:
      return kBreaksRules;
  }
  return {};
}

void Naming::see_status(Rank by, const SiteStatus& status) {
  for (std::size_t k = 0; k < status.listed.size(); ++k) {
    const Rank peer = status.listed[k];
    const PlannedLie* lie = plan_.lie_of(peer);
    if (lie != nullptr && std::ranges::count(words_for(lie->kind), status.reasons[k]) > 0) {
      seen_[{by, peer}].status = true;
    }
  }
}

void Naming::see_metrics(Rank by, const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    for (const PlannedLie& lie : plan_.lies) {
      for (const Rank peer : lie.sites) {
        if (says(line, peer, words_for(lie.kind))) {
          seen_[{by, peer}].metrics = true;
        }
      }
    }
  }
}

void Naming::see_log(Rank by, const std::vector<LogEntry>& log) {
  for (const LogEntry& entry : log) {
    if (entry.peer < 0) {
      continue;
    }
    const PlannedLie* lie = plan_.lie_of(entry.peer);
    if (lie != nullptr && is_event_of(entry.event, words_for(lie->kind))) {
      seen_[{by, entry.peer}].log = true;
    } else if (lie == nullptr && accuses(entry.event)) {
      ++honest_accused_;
    }
  }
}

std::vector<NamedLiar> Naming::named(const std::vector<std::vector<Rank>>& neighbours) const {
  std::vector<NamedLiar> all;
  for (const PlannedLie& lie : plan_.lies) {
    for (const Rank site : lie.sites) {
      NamedLiar& one = all.emplace_back(NamedLiar{.site = site, .kind = lie.kind});
      for (const Rank by : neighbours[static_cast<std::size_t>(site)]) {
        if (plan_.lie_of(by) != nullptr) {
          continue;
        }
        const auto found = seen_.find({by, site});
        const Seen seen = found == seen_.end() ? Seen() : found->second;
        ++one.neighbours;
        one.log += seen.log ? 1 : 0;
        one.status += seen.status ? 1 : 0;
        one.metrics += seen.metrics ? 1 : 0;
      }
    }
  }
  return all;
}

}  // namespace sotto::sitelab

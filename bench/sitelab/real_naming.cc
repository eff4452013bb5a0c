#include "real_naming.h"

#include <algorithm>
#include <span>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include <sotto/sites/faults/lie_signs.h>

#include "site_name.h"

namespace sotto::sitelab {
namespace {

/// The words by which a site says what a liar does, as status and metrics write them; the log's
/// events are "peer-" and one of them.
std::vector<std::string_view> words_for(LieKind kind) {
  std::vector<std::string_view> words;
  for (const LieSign& sign : lie_signs()) {
    if (sign.lie == kind && sign.usual) {
      words.push_back(sign.word);
    }
  }
  return words;
}

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

void RealNaming::see_status(Rank by, const SiteStatus& status) {
  for (std::size_t k = 0; k < status.listed.size(); ++k) {
    const Rank peer = status.listed[k];
    const PlannedLie* lie = plan_.lie_of(peer);
    if (lie != nullptr && std::ranges::count(words_for(lie->kind), status.reasons[k]) > 0) {
      seen_[{by, peer}].status = true;
    }
  }
}

void RealNaming::see_metrics(Rank by, const std::string& text) {
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

void RealNaming::see_log(Rank by, const std::vector<LogEntry>& log) {
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

std::vector<NamedLiar> RealNaming::named(const std::vector<std::vector<Rank>>& neighbours) const {
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

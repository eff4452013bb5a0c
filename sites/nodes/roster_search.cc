#include <sotto/sites/nodes/roster_search.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sotto {
namespace {

SiteEvent event_of(SiteEvent::Kind kind, std::string text) {
  return {.level = SiteEvent::Level::warning, .kind = kind, .text = std::move(text)};
}

std::string silent_text(const RosterSearchState& state) {
  std::vector<std::string> seeds;
  for (const std::string& seed : state.silent) {
    const bool unknown = std::ranges::find(state.unknown, seed) != state.unknown.end();
    seeds.push_back(unknown ? seed + " (nobody knows the name)" : seed);
  }
  return fmt::format(
      "no answer from {}: is the run over, or does no node of it listen there; do its settings "
      "name the same key; do firewalls let UDP through",
      fmt::join(seeds, ", "));
}

}  // namespace

std::string words_of_asking(const std::string& address, const std::vector<std::string>& asked,
                            bool by_store) {
  if (by_store && asked.empty()) {
    return fmt::format(
        "the store has no other node's address: the others find this one, at {}, in the same "
        "store, "
        "and have the same key",
        address);
  }
  return asked.empty()
             ? fmt::format(
                   "this one asks nobody, as it is at the only seed's address: the others have to "
                   "find it at {}, by the same seeds and the same key; a seed such as localhost is "
                   "another machine's own there",
                   address)
             : fmt::format("asks at {}: see that a node of the run is there, and has the same key",
                           fmt::join(asked, ", "));
}

std::vector<SiteEvent> RosterSearch::due(sites::RosterTime now, const RosterSearchState& state) {
  std::vector<SiteEvent> events;
  if (state.few && !few_) {
    few_since_ = now;
  }
  few_ = state.few;
  if (now - told_ < (state.few ? kWhileFew : kWhileEnough)) {
    return events;
  }
  // The others have mostly left at the end of a run, when this node leaves, too.
  const bool missing = state.few && now - few_since_ >= kWhileFew;
  if (missing && !state.silent.empty()) {
    events.push_back(event_of(SiteEvent::Kind::seeds_silent, silent_text(state)));
  } else if (missing && state.alone) {
    events.push_back(
        event_of(SiteEvent::Kind::nobody_heard,
                 fmt::format("no other node is heard; {}",
                             words_of_asking(state.address, state.asked, state.by_store))));
  }
  if (state.refused > refused_) {
    events.push_back(event_of(
        SiteEvent::Kind::datagrams_refused,
        fmt::format("{} datagrams did not open with this run's key: if they are from nodes of the "
                    "run, give all of them one key",
                    state.refused - refused_)));
    refused_ = state.refused;
  }
  if (!events.empty()) {
    told_ = now;
  }
  return events;
}

}  // namespace sotto

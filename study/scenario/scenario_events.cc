// What happens in a scenario: [[events]].
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/scenario/internal/events.h>
#include <sotto/study/scenario/internal/links.h>
#include <sotto/study/scenario/internal/trunks.h>
#include <sotto/study/scenario/scenario_marks.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

/// Each is in memory from the start, with the place where it stands.
constexpr std::size_t kMostHappenings = 2'000'000;

/// What may happen to nodes, besides that they join.
constexpr std::array kOfNodes = {NodeEvent::Kind::crash, NodeEvent::Kind::vanish,
                                 NodeEvent::Kind::leave, NodeEvent::Kind::suspend,
                                 NodeEvent::Kind::resume};

void read_partition(TomlReader& in, SimTime at, Scenario& scenario, const Names& names) {
  NetworkPartition partition{.at = at, .parts = {}};
  std::vector<bool> taken(static_cast<std::size_t>(scenario.nodes));
  for (const std::string& part : in.texts("partition")) {
    in.at("partition", [&] { partition.parts.push_back(names.ranks(part)); });
    for (const Rank rank : partition.parts.back()) {
      if (taken[static_cast<std::size_t>(rank)]) {
        in.refuse("partition", fmt::format("node {} is in two parts", rank));
      }
      taken[static_cast<std::size_t>(rank)] = true;
    }
  }
  if (partition.parts.size() < 2) {
    in.refuse("partition", "give two parts or more, e.g. [\"0-3\", \"4-7\"]");
  }
  if (const auto lasting = in.parsed("for", parse_duration)) {
    if (*lasting == 0) {
      in.refuse("for", "it must be longer than 0; left out, the partition is for good");
    }
    partition.until = plus(at, *lasting);
  }
  scenario.partitions.push_back(std::move(partition));
}

/// Refuses a latency that is below the jitter of a link which it is for.
void check_jitter(const TomlReader& in, const LinksChange& change, const Scenario& scenario) {
  const auto above = [&](const LinkSpec& link) { return link.jitter > *change.latency; };
  const bool none = !above(scenario.link) &&
                    std::none_of(scenario.between.begin(), scenario.between.end(),
                                 [&](const LinksBetween& links) { return above(links.link); });
  if (none) {
    return;
  }
  for (const Rank from : change.from) {
    for (const Rank to : change.to) {
      if (from != to && above(scenario.link_between(from, to))) {
        in.refuse("link", fmt::format("from node {} to node {} the jitter, which stays, is larger "
                                      "than this latency",
                                      from, to));
      }
    }
  }
}

/// A link from one of `from` to one of `to`, both sorted; none where there is no other than from a
/// node to itself.
std::optional<std::pair<Rank, Rank>> link_of(const std::vector<Rank>& from,
                                             const std::vector<Rank>& to) {
  if (from.empty() || to.empty()) {
    return std::nullopt;
  }
  if (from.front() != to.front()) {
    return std::pair(from.front(), to.front());
  }
  if (to.size() > 1) {
    return std::pair(from.front(), to[1]);
  }
  return from.size() > 1 ? std::optional(std::pair(from[1], to.front())) : std::nullopt;
}

/// Refuses the last change of `scenario` where a change of another event, before number
/// `own_from`, is of the same figure of the same link at the same moment. `places` are where the
/// changes stand.
void check_changes(const TomlReader& in, const Scenario& scenario, std::size_t own_from,
                   const std::vector<std::string>& places) {
  const LinksChange& change = scenario.changes.back();
  const auto common = [](std::vector<Rank> a, std::vector<Rank> b) {
    std::ranges::sort(a);
    std::ranges::sort(b);
    std::vector<Rank> both;
    std::ranges::set_intersection(a, b, std::back_inserter(both));
    return both;
  };
  for (std::size_t i = 0; i < own_from; ++i) {
    const LinksChange& other = scenario.changes[i];
    const bool bandwidth = other.bytes_per_s && change.bytes_per_s;
    if (other.at != change.at || !(bandwidth || (other.latency && change.latency))) {
      continue;
    }
    if (const auto link = link_of(common(change.from, other.from), common(change.to, other.to))) {
      in.refuse("link", fmt::format("at that moment {} changes the {} of links from node {} to "
                                    "node {} too; which of them counts?",
                                    places[i], bandwidth ? "bandwidth" : "latency", link->first,
                                    link->second));
    }
  }
}

/// New figures of links; both ways, unless it is one-way.
void read_change(TomlReader& in, SimTime at, Scenario& scenario, const Names& names,
                 std::vector<std::string>& places) {
  const std::size_t own_from = scenario.changes.size();
  in.require("link", "what the links have from now on, a preset or bandwidth and latency");
  const auto [from, to] = read_ends(in, names);
  const LinkChangeFigures figures = read_changed_figures(in);
  LinksChange change = {.at = at,
                        .from = from,
                        .to = to,
                        .bytes_per_s = figures.bytes_per_s,
                        .latency = figures.latency};
  if (change.latency) {
    check_jitter(in, change, scenario);
  }
  scenario.changes.push_back(change);
  check_changes(in, scenario, own_from, places);
  if (!in.truth("one-way").value_or(false)) {
    std::swap(change.from, change.to);
    if (change.latency) {
      check_jitter(in, change, scenario);
    }
    scenario.changes.push_back(std::move(change));
    check_changes(in, scenario, own_from, places);
  }
  places.resize(scenario.changes.size(), in.place("link"));
}

/// The places of changes of which two may contradict each other.
struct ChangePlaces {
  std::vector<std::string> links;   ///< places of Scenario::changes
  std::vector<std::string> trunks;  ///< places of Scenario::trunk_changes
};

void read_event(TomlReader& in, Scenario& scenario, const Names& names, EventPlaces& places,
                ChangePlaces& change_places) {
  in.allow({"crash", "vanish", "leave", "suspend", "resume", "join", "partition", "for", "from",
            "to", "link", "one-way", "trunk"});
  in.require("at", "the virtual time, e.g. \"10 s\"");
  for (const auto& [key, goes_with] :
       {std::pair("for", "partition"), std::pair("one-way", "link")}) {
    if (in.has(key) && !in.has(goes_with)) {
      in.refuse(key, fmt::format("it goes with {}, which is not there", goes_with));
    }
  }
  const SimTime at = *in.parsed("at", parse_duration);
  bool something = false;
  for (const char* key : {"crash", "vanish", "leave", "suspend", "resume", "join"}) {
    if (in.has(key)) {
      something = true;
      happen_to(read_ranks(in, key, names), at, key, in.place(key), scenario, places);
    }
  }
  if (in.has("partition")) {
    something = true;
    read_partition(in, at, scenario, names);
  }
  if (in.has("trunk")) {
    something = true;
    read_trunk_change(in, at, scenario, change_places.trunks);
  } else if (in.has("link") || in.has("from") || in.has("to")) {
    something = true;
    read_change(in, at, scenario, names, change_places.links);
  }
  in.finish();
  if (!something) {
    in.refuse("at",
              "nothing happens then; give crash, vanish, leave, suspend, resume, join, "
              "partition, or link with from and to, or with trunk");
  }
}

/// Refuses what cannot happen to a node.
void check_lives(const Scenario& scenario, const EventPlaces& places) {
  using Kind = NodeEvent::Kind;
  std::vector<std::size_t> in_time(scenario.events.size());
  std::iota(in_time.begin(), in_time.end(), std::size_t{0});
  std::stable_sort(in_time.begin(), in_time.end(), [&](std::size_t a, std::size_t b) {
    return scenario.events[a].at < scenario.events[b].at;
  });
  std::map<Rank, std::size_t> latest;  ///< index of each node's latest event so far
  std::map<Rank, Kind> last;
  for (const std::size_t i : in_time) {
    const NodeEvent& event = scenario.events[i];
    const auto refuse_it = [&](std::string_view why) {
      throw Error(fmt::format("{}: {} of node {} at {}: {}", places[i], kind_name(event.kind),
                              event.node, duration_text(to_seconds(event.at)), why));
    };
    const SimTime start = scenario.node_specs[static_cast<std::size_t>(event.node)].start;
    if (event.at == start && start > 0) {
      refuse_it("it joins at that moment; which of them comes first?");
    }
    if (event.at < start) {
      refuse_it("it joins later, and who has ended does not come back");
    }
    const auto [other, fresh] = latest.emplace(event.node, i);
    if (!fresh && scenario.events[other->second].at == event.at) {
      refuse_it(fmt::format("at that moment there is also {}, at {}; which of them comes first?",
                            kind_name(scenario.events[other->second].kind), places[other->second]));
    }
    other->second = i;
    const auto before = last.find(event.node);
    const bool still = before != last.end() && before->second == Kind::suspend;
    if (before != last.end() && !still && before->second != Kind::resume) {
      refuse_it("it has ended by then");
    }
    if (event.kind == Kind::suspend && still) {
      refuse_it("it stands still already");
    }
    if (event.kind == Kind::resume && !still) {
      refuse_it("it does not stand still then");
    }
    if (event.kind != Kind::leave || !still) {
      last[event.node] = event.kind;  // a node that stands still leaves when it goes on
    }
  }
}

}  // namespace

LinkChangeFigures read_changed_figures(TomlReader& in) {
  const LinkSpec link = read_link_between(in, "link");
  const TomlReader figures = in.holds_text("link") ? in : *in.table("link");
  const bool whole = in.holds_text("link") || figures.has("preset");
  for (const char* key : {"jitter", "loss", "trace", "queue"}) {
    if (!in.holds_text("link") && figures.has(key)) {
      figures.refuse(key,
                     "an event changes bandwidth and latency; jitter, loss, trace and queue stay");
    }
  }
  LinkChangeFigures changed;
  if (whole || figures.has("bandwidth")) {
    changed.bytes_per_s = link.bytes_per_s;
  }
  if (whole || figures.has("latency")) {
    changed.latency = link.latency;
  }
  if (!changed.bytes_per_s && !changed.latency) {
    in.refuse("link", "nothing changes; give bandwidth, latency or both");
  }
  return changed;
}

void happen_to(const std::vector<Rank>& ranks, SimTime at, std::string_view what,
               const std::string& place, Scenario& scenario, EventPlaces& places) {
  if (scenario.events.size() + ranks.size() > kMostHappenings) {
    throw Error(
        fmt::format("{}: more than {} things happen to nodes by now", place, kMostHappenings));
  }
  for (const Rank rank : ranks) {
    if (what == "join") {
      SimTime& start = scenario.node_specs[static_cast<std::size_t>(rank)].start;
      if (start > 0) {
        throw Error(fmt::format("{}: node {} joins twice", place, rank));
      }
      if (!scenario.availability.empty() &&
          scenario.availability[static_cast<std::size_t>(rank)].times != nullptr) {
        throw Error(fmt::format("{}: node {} comes and goes as its availability or hours say",
                                place, rank));
      }
      start = at;
      continue;
    }
    const auto kind = std::find_if(kOfNodes.begin(), kOfNodes.end(),
                                   [&](NodeEvent::Kind one) { return kind_name(one) == what; });
    if (kind == kOfNodes.end()) {
      throw Error(fmt::format("{}: '{}' is none of crash, vanish, leave, suspend, resume and join",
                              place, what));
    }
    scenario.events.push_back({.at = at, .node = rank, .kind = *kind});
    places.push_back(place);
  }
}

void read_events(TomlReader& file, Scenario& scenario, const Names& names) {
  EventPlaces places;
  ChangePlaces change_places;
  for (TomlReader& event : file.tables("events")) {
    read_event(event, scenario, names, places, change_places);
  }
  read_churn(file, scenario, names, places);
  check_lives(scenario, places);
}

}  // namespace sotto::study

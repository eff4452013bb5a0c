// Links that groups of nodes share: [[network.trunk]], and the events that change them.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/study/scenario/internal/events.h>
#include <sotto/study/scenario/internal/links.h>
#include <sotto/study/scenario/internal/trunks.h>

namespace sotto::study {
namespace {

std::vector<Rank> all_but(const std::vector<Rank>& ranks, int nodes) {
  std::vector<Rank> others;
  for (Rank rank = 0; rank < nodes; ++rank) {
    if (!std::ranges::binary_search(ranks, rank)) {
      others.push_back(rank);
    }
  }
  return others;
}

/// The nodes of both ends: those that `nodes` names and all others, or `from` and `to`.
std::pair<std::vector<Rank>, std::vector<Rank>> read_trunk_ends(TomlReader& in,
                                                                const Scenario& scenario,
                                                                const Names& names) {
  if (in.has("nodes")) {
    if (in.has("from") || in.has("to")) {
      in.refuse("nodes",
                "a trunk is of all that enters or leaves `nodes`, or of what goes between `from` "
                "and `to`; give one of the two");
    }
    std::vector<Rank> inside = read_ranks(in, "nodes", names);
    std::vector<Rank> outside = all_but(inside, scenario.nodes);
    if (outside.empty()) {
      in.refuse("nodes", "no node is left on the other side");
    }
    return {std::move(inside), std::move(outside)};
  }
  if (!in.has("from") && !in.has("to")) {
    in.require("nodes", "a site's nodes, whose way out and in it is, or else from and to");
  }
  auto ends = read_ends(in, names);
  std::vector<Rank> both;
  std::ranges::set_intersection(ends.first, ends.second, std::back_inserter(both));
  if (!both.empty()) {
    in.refuse("to", fmt::format("node {} is in from, too: a trunk has two sides", both.front()));
  }
  return ends;
}

std::string read_trunk_name(TomlReader& in, const std::map<std::string, std::string>& taken) {
  in.require("name", "one word that reports and events call it by");
  const std::string name = *in.text("name");
  const bool word =
      !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0 &&
      std::ranges::all_of(name, [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
      });
  if (!word) {
    in.refuse("name", "it is one word of letters, digits, - and _ that begins with a letter");
  }
  if (const auto other = taken.find(name); other != taken.end()) {
    in.refuse("name", fmt::format("another trunk is called so, at {}", other->second));
  }
  return name;
}

}  // namespace

void read_trunks(TomlReader& network, Scenario& scenario, const Names& names) {
  std::map<std::string, std::string> places;
  for (TomlReader& in : network.tables("trunk")) {
    const std::string name = read_trunk_name(in, places);
    places.emplace(name, in.place("name"));
    in.require("link", "what all share: a preset of `sotto list`, or bandwidth and latency");
    auto [from, to] = read_trunk_ends(in, scenario, names);
    Trunk there = {.name = name, .from = from, .to = to, .link = read_link_between(in, "link")};
    Trunk back = {.name = name, .from = std::move(to), .to = std::move(from), .link = there.link};
    there.link.name = name + " there";
    back.link.name = name + " back";
    scenario.trunks.push_back(std::move(there));
    if (!in.truth("one-way").value_or(false)) {
      scenario.trunks.push_back(std::move(back));
    }
    in.finish();
  }
}

void read_trunk_change(TomlReader& event, SimTime at, Scenario& scenario,
                       std::vector<std::string>& places) {
  if (event.has("from") || event.has("to") || event.has("one-way")) {
    event.refuse("trunk", "its link is the trunk's, both ways: leave out from, to and one-way");
  }
  TrunkChange change{.at = at, .name = *event.text("trunk"), .bytes_per_s = {}, .latency = {}};
  const auto trunk = std::ranges::find(scenario.trunks, change.name, &Trunk::name);
  if (trunk == scenario.trunks.end()) {
    std::vector<std::string> known;
    for (const Trunk& one : scenario.trunks) {
      if (std::ranges::find(known, one.name) == known.end()) {
        known.push_back(one.name);
      }
    }
    event.refuse("trunk", known.empty() ? std::string("there is no [[network.trunk]]")
                                        : fmt::format("no trunk is called '{}'; there is {}",
                                                      change.name, fmt::join(known, ", ")));
  }
  event.require("link", "what the trunk has from now on, a preset or bandwidth and latency");
  const LinkChangeFigures figures = read_changed_figures(event);
  change.bytes_per_s = figures.bytes_per_s;
  change.latency = figures.latency;
  if (change.latency && trunk->link.jitter > *change.latency) {
    event.refuse("link", "the trunk's jitter, which stays, is larger than this latency");
  }
  for (std::size_t i = 0; i < scenario.trunk_changes.size(); ++i) {
    const TrunkChange& other = scenario.trunk_changes[i];
    if (other.at == change.at && other.name == change.name) {
      event.refuse("trunk", fmt::format("at that moment {} changes this trunk too; which of them "
                                        "counts?",
                                        places[i]));
    }
  }
  scenario.trunk_changes.push_back(std::move(change));
  places.push_back(event.place("trunk"));
}

}  // namespace sotto::study

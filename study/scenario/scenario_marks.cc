#include <sotto/study/scenario/scenario_marks.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/study/units.h>

namespace sotto::study {
namespace {

constexpr std::size_t kMostRanges = 4;

void add_nodes(const Scenario& scenario, std::vector<ScenarioMark>& marks) {
  std::map<std::pair<SimTime, std::string>, std::vector<Rank>> whom;
  for (const NodeEvent& event : scenario.events) {
    whom[{event.at, kind_name(event.kind)}].push_back(event.node);
  }
  for (std::size_t node = 0; node < scenario.node_specs.size(); ++node) {
    if (scenario.node_specs[node].start > 0) {
      whom[{scenario.node_specs[node].start, "join"}].push_back(static_cast<Rank>(node));
    }
  }
  for (const auto& [what, ranks] : whom) {
    marks.push_back({what.first, what.first, what.second,
                     fmt::format("{} {}", what.second, ranks_text(ranks))});
  }
}

/// The new figures of links, or of a trunk.
std::string figures_text(const auto& change) {
  std::vector<std::string> parts;
  if (change.bytes_per_s) {
    parts.push_back(rate_text(*change.bytes_per_s));
  }
  if (change.latency) {
    parts.push_back(duration_text(to_seconds(*change.latency)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Whether `back` is the way back of `there`, as read_scenario makes two of one entry.
bool way_back(const LinksChange& there, const LinksChange& back) {
  return there.at == back.at && opposite(there, back) && there.bytes_per_s == back.bytes_per_s &&
         there.latency == back.latency;
}

void add_changes(const Scenario& scenario, std::vector<ScenarioMark>& marks) {
  const auto& changes = scenario.changes;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const LinksChange& change = changes[i];
    const bool both = i + 1 < changes.size() && way_back(changes[i], changes[i + 1]);
    marks.push_back(
        {change.at, change.at, "change",
         fmt::format("{} {} {} {}: {}", both ? "between" : "from", ranks_text(change.from),
                     both ? "and" : "to", ranks_text(change.to), figures_text(change))});
    i += both ? 1 : 0;
  }
  for (const TrunkChange& change : scenario.trunk_changes) {
    marks.push_back(
        {change.at, change.at, "change", fmt::format("{}: {}", change.name, figures_text(change))});
  }
}

}  // namespace

std::string ranks_text(std::vector<Rank> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] <= ranks[last] + 1) {
      ++last;
    }
    texts.push_back(ranks[i] == ranks[last] ? fmt::format("{}", ranks[i])
                                            : fmt::format("{}-{}", ranks[i], ranks[last]));
    if (texts.size() == kMostRanges && last + 1 < ranks.size()) {
      texts.back() += fmt::format(" and {} more", ranks.size() - last - 1);
      break;
    }
    i = last + 1;
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

const char* kind_name(NodeEvent::Kind kind) {
  switch (kind) {
    case NodeEvent::Kind::crash:
      return "crash";
    case NodeEvent::Kind::vanish:
      return "vanish";
    case NodeEvent::Kind::leave:
      return "leave";
    case NodeEvent::Kind::suspend:
      return "suspend";
    default:
      return "resume";
  }
}

std::vector<ScenarioMark> marks_of(const Scenario& scenario) {
  std::vector<ScenarioMark> marks;
  add_nodes(scenario, marks);
  for (const NetworkPartition& partition : scenario.partitions) {
    std::vector<std::string> parts;
    std::transform(partition.parts.begin(), partition.parts.end(), std::back_inserter(parts),
                   ranks_text);
    marks.push_back({partition.at, partition.until, "partition",
                     fmt::format("partition {}", fmt::join(parts, " | "))});
  }
  add_changes(scenario, marks);
  std::stable_sort(marks.begin(), marks.end(),
                   [](const ScenarioMark& a, const ScenarioMark& b) { return a.at < b.at; });
  return marks;
}

}  // namespace sotto::study

#include <sotto/topology/node_groups.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>

namespace sotto {
namespace {

constexpr std::size_t kMostNodes = 1'000'000;

[[noreturn]] void refuse_line(std::size_t number, std::string_view line, std::string_view why) {
  refuse("groups", excerpt(line), fmt::format("line {}: {}", number, why));
}

/// "3" or "0-3"
void add_ranks(std::string_view word, std::size_t number, std::vector<Rank>& ranks) {
  const auto read = [&](std::string_view figure) {
    Rank rank = -1;
    const auto [end, error] = std::from_chars(figure.data(), figure.data() + figure.size(), rank);
    if (error != std::errc() || end != figure.data() + figure.size() || rank < 0 ||
        static_cast<std::size_t>(rank) >= kMostNodes) {
      refuse_line(number, word, "a rank is a whole number from 0 on, or a range such as 0-3");
    }
    return rank;
  };
  const auto dash = word.find('-');
  const Rank first = read(word.substr(0, dash));
  const Rank last = dash == std::string_view::npos ? first : read(word.substr(dash + 1));
  if (last < first) {
    refuse_line(number, word, "a range goes from its smaller rank to its larger one");
  }
  for (Rank rank = first; rank <= last; ++rank) {
    ranks.push_back(rank);
  }
}

}  // namespace

NodeGroups::NodeGroups(std::vector<std::vector<Rank>> groups) : groups_(std::move(groups)) {
  if (groups_.empty() || groups_.front().empty()) {
    throw Error("groups", "name the nodes of one group at least");
  }
  for (auto& group : groups_) {
    std::ranges::sort(group);
    if (group.size() != groups_.front().size()) {
      throw Error("groups", fmt::format("all have one size: one has {} nodes and another one {}",
                                        groups_.front().size(), group.size()));
    }
  }
  std::ranges::sort(groups_);
  places_.resize(groups_.size() * groups_.front().size());
  for (int group = 0; group < count(); ++group) {
    for (int position = 0; position < size(); ++position) {
      const Rank rank = rank_of(group, position);
      if (rank < 0 || static_cast<std::size_t>(rank) >= places_.size()) {
        throw Error("groups", fmt::format("with {} nodes ranks lie in 0 … {}, and there is {}",
                                          nodes(), nodes() - 1, rank));
      }
      Place& place = places_[static_cast<std::size_t>(rank)];
      if (place.group >= 0) {
        throw Error("groups", fmt::format("node {} is named twice", rank));
      }
      place = {group, position};
    }
  }
}

std::string NodeGroups::text() const {
  std::vector<std::string> lines;
  lines.reserve(groups_.size());
  for (const auto& group : groups_) {
    lines.push_back(fmt::format("{}", fmt::join(group, ",")));
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

std::vector<std::vector<Rank>> parse_groups(std::string_view text) {
  std::vector<std::vector<Rank>> groups;
  std::size_t number = 0;
  std::size_t nodes = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    constexpr std::string_view kBetween = " \t\r,";
    std::vector<Rank> ranks;
    while (true) {
      const auto first = line.find_first_not_of(kBetween);
      if (first == std::string_view::npos || line[first] == '#') {
        break;
      }
      line.remove_prefix(first);
      const std::string_view word = line.substr(0, line.find_first_of(kBetween));
      line.remove_prefix(word.size());
      add_ranks(word, number, ranks);
      if (nodes + ranks.size() > kMostNodes) {
        refuse_line(number, word, fmt::format("a job has {} nodes at most", kMostNodes));
      }
    }
    if (!ranks.empty()) {
      nodes += ranks.size();
      groups.push_back(std::move(ranks));
    }
  }
  return groups;
}

}  // namespace sotto

#include <sotto/study/scenario/internal/names.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>
#include <sotto/study/rank_list.h>

namespace sotto::study {

std::vector<Rank> Names::ranks(const std::string& text) const {
  std::set<Rank> found;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    const std::string one(trimmed(std::string_view(text).substr(from, comma - from)));
    const auto group = groups.find(one);
    const auto some = group == groups.end() ? parse_ranks(one, nodes) : group->second;
    found.insert(some.begin(), some.end());
    from = comma + 1;
  }
  return {found.begin(), found.end()};
}

void SaidOfNodes::note(const std::vector<Rank>& ranks, const std::string& place,
                       std::string_view twice) {
  for (const Rank rank : ranks) {
    const auto [first, fresh] = places_.emplace(rank, place);
    if (!fresh) {
      throw Error(
          fmt::format("{}: node {} {}; the other place is {}", place, rank, twice, first->second));
    }
  }
}

std::vector<Rank> read_ranks(TomlReader& in, std::string_view key, const Names& names) {
  in.require(key, "nodes, e.g. \"0-3, 7\", \"all\" or a group of [nodes.groups]");
  return *in.parsed(key, [&](const std::string& text) { return names.ranks(text); });
}

std::pair<std::vector<Rank>, std::vector<Rank>> read_ends(TomlReader& in, const Names& names) {
  auto from = read_ranks(in, "from", names);
  auto to = read_ranks(in, "to", names);
  if (from.size() == 1 && from == to) {
    in.refuse("to", "it is the same node as from");
  }
  return {std::move(from), std::move(to)};
}

}  // namespace sotto::study

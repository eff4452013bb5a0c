// How a scenario's file names nodes. Throws Error naming line and key of what is wrong. One thread
// at a time.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// How a scenario calls its nodes.
struct Names {
  int nodes = 0;
  std::map<std::string, std::vector<Rank>> groups = {};

  /// "0-3, europe": ascending, each once.
  std::vector<Rank> ranks(const std::string& text) const;
};

/// Which nodes some list speaks of, and where: what it says of a node a second time contradicts
/// what it said first, and is refused with both places.
class SaidOfNodes {
 public:
  /// Throws Error where one of the ranks was noted already; `twice` says what it then has or does.
  void note(const std::vector<Rank>& ranks, const std::string& place, std::string_view twice);

 private:
  std::map<Rank, std::string> places_;
};

/// The nodes that a key names, which has to be there.
std::vector<Rank> read_ranks(TomlReader& in, std::string_view key, const Names& names);
/// `from` and `to` of links.
std::pair<std::vector<Rank>, std::vector<Rank>> read_ends(TomlReader& in, const Names& names);

}  // namespace sotto::study

#include "peers_lists.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/delimited_text.h>
#include <sotto/base/error.h>
#include <sotto/base/text.h>
#include <sotto/comm/trust/peers_file.h>

namespace sotto {
namespace {

using Columns = std::vector<std::string_view>;

const Columns& usual_columns() {
  static const Columns kUsual = {"name", "key", "address", "may_send", "send_to"};
  return kUsual;
}

std::string end_text(std::optional<std::int64_t> until) {
  return until ? fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time_t{*until})) : "";
}

/// What a line of a list says of one of a site's keys, in this column; empty for other columns.
std::string cell_of(std::string_view column, const TrustedPeer& peer, const PeerKey& key) {
  const std::pair<std::string_view, std::string> cells[] = {
      {"name", peer.name},
      {"key", key.key.text()},
      {"address", peer.address},
      {"may_send", peer.may_send ? "yes" : "no"},
      {"send_to", peer.send_to ? "yes" : "no"},
      {"until", end_text(key.until)}};
  const auto* const found =
      std::ranges::find(cells, column, [](const auto& cell) { return cell.first; });
  return found == std::end(cells) ? "" : found->second;
}

/// A line for each key of the peer.
std::string lines_of(const Columns& columns, const TrustedPeer& peer) {
  std::string text;
  for (const PeerKey& key : peer.keys()) {
    std::vector<std::string> cells;
    cells.reserve(columns.size());
    for (const std::string_view column : columns) {
      cells.push_back(cell_of(column, peer, key));
    }
    text += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return text;
}

/// The columns that a list's first line names.
Columns columns_of(std::string_view text) {
  skip_byte_order_mark(text);
  Columns columns;
  std::string_view line;
  while (columns.empty() && take_line(text, line)) {
    if (trimmed(line).empty() || trimmed(line).front() == '#') {
      continue;
    }
    while (!line.empty()) {
      const auto cell = line.substr(0, line.find(','));
      columns.push_back(trimmed(cell));
      line.remove_prefix(std::min(line.size(), cell.size() + 1));
    }
  }
  return columns;
}

class Lists {
 public:
  Lists(const TrustPlan& plan, const std::string& path,
        const std::vector<std::optional<PresentList>>& present, const std::vector<PublicKey>& keys)
      : plan_(plan), path_(path), present_(present), ways_(plan.sites.size()) {
    for (const auto& [from, to] : plan.edges) {
      ways_[to][from].first = true;
      ways_[from][to].second = true;
    }
    for (std::size_t i = 0; i < plan.sites.size(); ++i) {
      own_.push_back(present[i] ? present_line(i) : new_line(i, keys.at(i)));
    }
    check_together();
  }

  std::string list_of(std::size_t site) const { return present_[site] ? grown(site) : fresh(site); }

 private:
  /// The line of a site that is there, with all its keys, as its own list has it.
  TrustedPeer present_line(std::size_t site) const {
    const PresentList& list = *present_[site];
    const PlannedSite& planned = plan_.sites[site];
    const auto lines = parse_peers_file(list.path, list.text, PeerNumbers::of_names);
    const auto own = std::ranges::find(lines, planned.name, &TrustedPeer::name);
    if (own == lines.end()) {
      throw Error(fmt::format("{}: it has no line for its own site, {}", list.path, planned.name));
    }
    if (own->address != planned.address) {
      throw Error(fmt::format("{}: the address of {} is '{}', and '{}' in {}; they must be equal",
                              list.path, planned.name, own->address, planned.address, path_));
    }
    return *own;
  }
  TrustedPeer new_line(std::size_t site, const PublicKey& key) const {
    return {.name = plan_.sites[site].name, .key = key, .address = plan_.sites[site].address};
  }

  /// Refuses names, keys and addresses of which two sites would have one.
  void check_together() const {
    Columns columns = usual_columns();
    columns.emplace_back("until");
    std::string all = fmt::format("{}\n", fmt::join(columns, ","));
    for (TrustedPeer line : own_) {
      line.may_send = line.send_to = true;
      all += lines_of(columns, line);
    }
    (void)parse_peers_file(path_, all, PeerNumbers::of_names);
  }

  /// The line of `peer` in the list of `site`, with the plan's edges between the two.
  TrustedPeer peer_line(std::size_t site, std::size_t peer) const {
    if (plan_.sites[site].address.empty() && plan_.sites[peer].address.empty()) {
      throw Error(
          fmt::format("{}: neither {} nor {} has an address, so that neither can dial the "
                      "other",
                      path_, plan_.sites[site].name, plan_.sites[peer].name));
    }
    TrustedPeer line = own_[peer];
    std::tie(line.may_send, line.send_to) = ways_[site].at(peer);
    return line;
  }

  std::string fresh(std::size_t site) const {
    std::vector<TrustedPeer> lines = {own_[site]};
    for (const auto& [peer, way] : ways_[site]) {
      lines.push_back(peer_line(site, peer));
    }
    Columns columns = usual_columns();
    const bool ends = std::ranges::any_of(lines, [](const TrustedPeer& line) {
      const auto keys = line.keys();
      return std::ranges::any_of(keys, [](const PeerKey& key) { return key.until.has_value(); });
    });
    if (ends) {
      columns.emplace_back("until");
    }
    std::string list = fmt::format("{}\n", fmt::join(columns, ","));
    for (const TrustedPeer& line : lines) {
      list += lines_of(columns, line);
    }
    return list;
  }

  /// The text that is there, and lines of new sites below it.
  std::string grown(std::size_t site) const {
    const PresentList& list = *present_[site];
    const auto lines = parse_peers_file(list.path, list.text, PeerNumbers::of_names);
    const Columns columns = columns_of(list.text);
    std::string added;
    for (const auto& [peer, way] : ways_[site]) {
      const auto listed = std::ranges::find(lines, plan_.sites[peer].name, &TrustedPeer::name);
      if (present_[peer] || (listed != lines.end() && listed->holds(own_[peer].key))) {
        continue;
      }
      const TrustedPeer line = peer_line(site, peer);
      require(list, columns, line);
      added += lines_of(columns, line);
    }
    if (added.empty()) {
      return list.text;
    }
    const std::string text = list.text + (list.text.ends_with('\n') ? "" : "\n") + added;
    (void)parse_peers_file(list.path, text, PeerNumbers::of_names);
    return text;
  }

  /// A column may be missing where its usual value is meant.
  static void require(const PresentList& list, const Columns& columns, const TrustedPeer& line) {
    for (const auto& [column, needed] : {std::pair{"address", !line.address.empty()},
                                         {"may_send", !line.may_send},
                                         {"send_to", !line.send_to}}) {
      if (needed && std::ranges::find(columns, column) == columns.end()) {
        throw Error(
            fmt::format("{}: the line of {} needs the column '{}': add it to the first "
                        "line, and a cell to each other one",
                        list.path, line.name, column));
      }
    }
  }

  const TrustPlan& plan_;
  const std::string& path_;
  const std::vector<std::optional<PresentList>>& present_;
  /// For each site, its peers in order: whether they send to it, and it to them.
  std::vector<std::map<std::size_t, std::pair<bool, bool>>> ways_;
  std::vector<TrustedPeer> own_;  ///< each site's line in its own list
};

}  // namespace

std::vector<std::string> peers_lists(const TrustPlan& plan, const std::string& path,
                                     const std::vector<PublicKey>& keys) {
  return grown_lists(plan, path, std::vector<std::optional<PresentList>>(plan.sites.size()), keys);
}

std::vector<std::string> grown_lists(const TrustPlan& plan, const std::string& path,
                                     const std::vector<std::optional<PresentList>>& present,
                                     const std::vector<PublicKey>& keys) {
  const Lists grown(plan, path, present, keys);
  std::vector<std::string> lists;
  for (std::size_t i = 0; i < plan.sites.size(); ++i) {
    lists.push_back(grown.list_of(i));
  }
  return lists;
}

}  // namespace sotto

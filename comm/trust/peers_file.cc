#include <sotto/comm/trust/peers_file.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/delimited_text.h>
#include <sotto/base/digest.h>
#include <sotto/base/error.h>
#include <sotto/base/input_file.h>
#include <sotto/base/name_length.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>
#include <sotto/base/unix_time.h>

#include "../internal/address/host_port.h"

namespace sotto {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr auto kColumns = std::to_array<std::string_view>(
    {"rank", "name", "key", "address", "may_send", "send_to", "until"});
enum Column : std::size_t { kRank, kName, kKey, kAddress, kMaySend, kSendTo, kUntil };
using Cells = std::array<std::optional<std::string_view>, kColumns.size()>;

/// "2026-12-31" or "2026-12-31T18:00:00Z" as seconds since 1970; a day is its end.
std::optional<std::int64_t> parse_end(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  constexpr std::size_t kDay = 10;
  if (text.size() != kDay && text.size() != kForm.size()) {
    return std::nullopt;
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool digit = text[at] >= '0' && text[at] <= '9';
    if (kForm[at] == '0' ? !digit : text[at] != kForm[at]) {
      return std::nullopt;
    }
  }
  const auto number = [&](std::size_t at, std::size_t digits) {
    return parse_number<int>(text.substr(at, digits), 0, 9999).value_or(0);
  };
  const std::chrono::year_month_day day(std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2))));
  constexpr int kFirstYear = 1970;
  constexpr int kLastYear = 9998;
  if (!day.ok() || int{day.year()} < kFirstYear || int{day.year()} > kLastYear) {
    return std::nullopt;
  }
  const auto days = std::chrono::sys_days(day);
  if (text.size() == kDay) {
    return std::chrono::seconds((days + std::chrono::days(1)).time_since_epoch()).count();
  }
  const std::int64_t hour = number(11, 2);
  const std::int64_t minute = number(14, 2);
  const std::int64_t second = number(17, 2);
  if (hour > 23 || minute > 59 || second > 59) {
    return std::nullopt;
  }
  return std::chrono::seconds(days.time_since_epoch()).count() + 3600 * hour + 60 * minute + second;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const auto comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) {
      return cells;
    }
    line.remove_prefix(comma + 1);
  }
}

class Reader {
 public:
  Reader(const std::string& path, PeerNumbers numbers) : path_(path), numbers_(numbers) {}

  std::vector<TrustedPeer> read(std::string_view text) {
    std::string_view rest = text;
    skip_byte_order_mark(rest);
    std::string_view whole;
    for (line_ = 1; take_line(rest, whole); ++line_) {
      const auto line = trimmed(whole);
      if (line.empty() || line.front() == '#') {
        continue;
      }
      if (columns_.empty()) {
        take_header(cells_of(line));
      } else {
        take_peer(cells_of(line));
      }
    }
    if (peers_.empty()) {
      const bool sites = numbers_ == PeerNumbers::of_names;
      const std::span<const std::string_view> columns(kColumns);
      refuse("peers", path_,
             fmt::format("it lists nobody; its first line is '{}', and each further one a {}{}",
                         fmt::join(columns.subspan(sites ? kName : kRank), ","),
                         sites ? "site" : "node", sites ? ", the site itself among them" : ""));
    }
    return std::move(peers_);
  }

 private:
  [[noreturn]] void refuse_line(const std::string& why) const {
    throw Error(fmt::format("{}:{}: {}", path_, line_, why));
  }
  [[noreturn]] void refuse_cell(Column column, std::string_view value, std::string_view why) const {
    refuse_line(fmt::format("{}: '{}': {}", kColumns[column], excerpt(value), why));
  }

  void take_header(const std::vector<std::string_view>& cells) {
    for (const auto cell : cells) {
      const auto* const found = std::find(kColumns.begin(), kColumns.end(), cell);
      const auto at = static_cast<std::size_t>(found - kColumns.begin());
      if (found == kColumns.end()) {
        refuse_line(fmt::format("'{}' is no column; there are {}", excerpt(cell),
                                fmt::join(kColumns, ", ")));
      }
      const auto first = std::find(columns_.begin(), columns_.end(), at);
      if (first != columns_.end()) {
        refuse_line(fmt::format("'{}' is both column {} and column {}", cell,
                                first - columns_.begin() + 1, columns_.size() + 1));
      }
      columns_.push_back(at);
    }
    const bool by_name = numbers_ == PeerNumbers::of_names;
    for (const Column needed : {by_name ? kName : kRank, kKey}) {
      if (std::find(columns_.begin(), columns_.end(), needed) == columns_.end()) {
        refuse_line(fmt::format("the column '{}' is missing", kColumns[needed]));
      }
    }
  }

  void take_peer(const std::vector<std::string_view>& values) {
    if (values.size() != columns_.size()) {
      refuse_line(
          fmt::format("{} cells where the first line has {}", values.size(), columns_.size()));
    }
    if (peers_.size() == kMostPeers) {
      refuse_line(fmt::format("more than {} peers", kMostPeers));
    }
    Cells cells;
    for (std::size_t i = 0; i < values.size(); ++i) {
      cells[columns_[i]] = values[i];
    }
    TrustedPeer peer;
    peer.name = name_of(cells[kName].value_or(""));
    peer.rank = numbers_ == PeerNumbers::ranks ? rank_of(*cells[kRank]) : number_of(peer.name);
    peer.key = key_of(*cells[kKey]);
    peer.address = address_of(cells[kAddress].value_or(""));
    peer.may_send = truth_of(kMaySend, cells);
    peer.send_to = truth_of(kSendTo, cells);
    peer.until = end_of(cells[kUntil].value_or(""));
    if (add_key(peer)) {
      return;
    }
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      refuse_repeated(peer, peers_[i], lines_[i]);
    }
    peers_.push_back(std::move(peer));
    lines_.push_back(line_);
  }

  /// True where the line has another key of a site that is there already.
  bool add_key(const TrustedPeer& peer) {
    const auto same = std::ranges::find(peers_, peer.name, &TrustedPeer::name);
    if (numbers_ != PeerNumbers::of_names || same == peers_.end()) {
      return false;
    }
    const int first = lines_[static_cast<std::size_t>(same - peers_.begin())];
    for (const TrustedPeer& other : peers_) {
      if (other.holds(peer.key)) {
        refuse_line(fmt::format("this key stands in the lines of {} already", other.name));
      }
    }
    if (peer.address != same->address || peer.may_send != same->may_send ||
        peer.send_to != same->send_to) {
      refuse_line(
          fmt::format("this name stands in line {} already; two lines of a name, one for "
                      "each of its keys, differ in key and until alone",
                      first));
    }
    if (same->more_keys.size() + 1 == kMostKeysOfPeer) {
      refuse_line(fmt::format("a site has {} keys at most", kMostKeysOfPeer));
    }
    same->more_keys.push_back({peer.key, peer.until});
    return true;
  }

  /// Refuses what two lines cannot both have; `other` stands in the other one.
  void refuse_repeated(const TrustedPeer& peer, const TrustedPeer& other, int line) const {
    const auto taken = internal::split_addresses(other.address);
    for (const std::string& one : internal::split_addresses(peer.address)) {
      if (std::ranges::find(taken, one) != taken.end()) {
        refuse_cell(
            kAddress, one,
            fmt::format("that is where {} listens, in line {}; each has an address of its own",
                        other.name.empty() ? fmt::format("rank {}", other.rank) : other.name,
                        line));
      }
    }
    const bool named = !peer.name.empty() && other.name == peer.name;
    const char* const same = other.holds(peer.key)                                       ? "key"
                             : named                                                     ? "name"
                             : other.rank == peer.rank && numbers_ == PeerNumbers::ranks ? "rank"
                             : other.rank == peer.rank ? "name's number"
                                                       : nullptr;
    if (same != nullptr) {
      refuse_line(fmt::format("this {} stands in line {} already", same, line));
    }
  }

  Rank rank_of(std::string_view text) const {
    const auto rank = parse_number<Rank>(text);
    if (!rank) {
      refuse_cell(kRank, text, "ranks are numbers from 0");
    }
    return *rank;
  }
  /// Two names with one number are as unlikely as a name that is there twice by accident, and
  /// refused like it.
  Rank number_of(const std::string& name) const {
    if (name.empty()) {
      refuse_cell(kName, name, "sites know each other by name: each needs one");
    }
    const std::string digest = sha256_hex(std::as_bytes(std::span(name)));
    return static_cast<Rank>(std::stoul(digest.substr(0, 8), nullptr, 16) & 0x7FFFFFFFU);
  }
  std::string name_of(std::string_view text) const {
    std::string name = one_line(text);
    if (name.size() > kMostNameBytes) {
      refuse_cell(kName, text, fmt::format("a name has {} bytes at most", kMostNameBytes));
    }
    return name;
  }
  PublicKey key_of(std::string_view text) const {
    const auto key = PublicKey::parse(text);
    if (!key) {
      // Not repeated: it may be a secret that was pasted into the wrong file.
      refuse_line(fmt::format(
          "{}: its {} characters are no public key, which has 40, as `sotto keygen` prints them",
          kColumns[kKey], text.size()));
    }
    if (!key->sound()) {
      refuse_cell(kKey, text, "anybody can pose as this key; `sotto keygen` makes a sound one");
    }
    return *key;
  }
  std::string address_of(std::string_view text) const {
    const bool sites = numbers_ == PeerNumbers::of_names;
    const auto all = internal::split_addresses(text);
    if (all.size() > (sites ? kMostAddressesOfPeer : 1)) {
      refuse_cell(kAddress, text,
                  sites ? "these are too many addresses; a site has 8 at most"
                        : "write one HOST:PORT, or nothing");
    }
    for (const std::string& one : all) {
      if (!internal::parse_host_port(one)) {
        refuse_cell(kAddress, one,
                    sites ? "write HOST:PORT, several with spaces between them, or nothing where "
                            "the site only dials"
                          : "write HOST:PORT, or nothing");
      }
    }
    return fmt::format("{}", fmt::join(all, " "));
  }
  std::optional<std::int64_t> end_of(std::string_view text) const {
    if (text.empty()) {
      return std::nullopt;
    }
    const auto end = parse_end(text);
    if (!end || numbers_ != PeerNumbers::of_names) {
      refuse_cell(kUntil, text,
                  end ? "only keys of sites have an end"
                      : "write a day, 2026-12-31, a time, 2026-12-31T18:00:00Z, or nothing");
    }
    return end;
  }
  bool truth_of(Column column, const Cells& cells) const {
    const auto text = cells[column].value_or("yes");
    if (text != "yes" && text != "no") {
      refuse_cell(column, text, "it is yes or no");
    }
    return text == "yes";
  }

  const std::string& path_;
  const PeerNumbers numbers_;
  int line_ = 0;
  std::vector<std::size_t> columns_;  ///< the header's columns, in their order
  std::vector<TrustedPeer> peers_;
  std::vector<int> lines_;  ///< line number of each peer
};

}  // namespace

std::vector<TrustedPeer> read_peers_file(const std::string& path, PeerNumbers numbers) {
  auto peers = parse_peers_file(path, read_peers_text(path), numbers);
  drop_expired(peers, unix_seconds());
  return peers;
}

std::string read_peers_text(const std::string& path) {
  auto file = InputFile::open(path);
  if (file.ok() && (file->facts().st_mode & S_IWOTH) != 0) {
    refuse("peers", path,
           fmt::format("everybody on this host can change it, and so say whom to trust; take that "
                       "away with `chmod o-w {}`",
                       path));
  }
  auto text = file.ok() ? read_input(*file, kMostBytes) : Result<std::string>(file.status());
  if (!text.ok()) {
    refuse("peers", path, text.status().message());
  }
  return std::move(*text);
}

std::vector<TrustedPeer> parse_peers_file(const std::string& path, std::string_view text,
                                          PeerNumbers numbers) {
  return Reader(path, numbers).read(text);
}

}  // namespace sotto

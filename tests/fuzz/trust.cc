#include "trust.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/comm/trust/key_file.h>
#include <sotto/comm/trust/peers_file.h>
#include <sotto/sites/process/trust/peers_lists.h>
#include <sotto/sites/process/trust/trust_plan.h>

namespace sotto_fuzz {
namespace {

using sotto::check;

/// Messages quote a little of a file, not all of it.
constexpr std::size_t kLongestMessage = 1000;

std::string_view text_of(std::span<const std::byte> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

/// What stands behind "secret " is repeated by no message.
void check_discreet(std::string_view file, std::string_view message) {
  constexpr std::string_view kWord = "secret ";
  constexpr std::size_t kTelling = 16;  // of 40 characters
  for (auto at = file.find(kWord); at != std::string_view::npos; at = file.find(kWord, at + 1)) {
    const auto rest = file.substr(at + kWord.size());
    const auto value = rest.substr(0, rest.find_first_of(" ,'\n"));  // which no key has
    check(value.size() < kTelling || message.find(value) == std::string_view::npos,
          "a message does not repeat a secret");
  }
}

/// As a list of peers has it.
std::string time_text(std::int64_t seconds) {
  const std::chrono::sys_seconds time{std::chrono::seconds(seconds)};
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day day(days);
  const std::chrono::hh_mm_ss clock(time - days);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::string print(const std::vector<sotto::TrustedPeer>& peers) {
  const auto word = [](bool yes) { return yes ? "yes" : "no"; };
  std::string text = "rank,name,key,address,may_send,send_to,until\n";
  for (const sotto::TrustedPeer& peer : peers) {
    for (const sotto::PeerKey& one : peer.keys()) {
      text += fmt::format("{},{},{},{},{},{},{}\n", peer.rank, peer.name, one.key.text(),
                          peer.address, word(peer.may_send), word(peer.send_to),
                          one.until ? time_text(*one.until) : "");
    }
  }
  return text;
}

}  // namespace

void read_key(std::string_view /*name*/, std::span<const std::byte> input) {
  const auto text = text_of(input);
  try {
    const auto keys = sotto::parse_key_file("site.key", text);
    check(keys.private_key.public_key() == keys.public_key, "what is read is a pair");
  } catch (const sotto::Error& error) {
    check(std::string_view(error.what()).size() < kLongestMessage, "messages are short");
    check_discreet(text, error.what());
  }
}

void read_list(std::string_view text, sotto::PeerNumbers numbers) {
  std::vector<sotto::TrustedPeer> peers;
  try {
    peers = sotto::parse_peers_file("peers.csv", text, numbers);
  } catch (const sotto::Error& error) {
    check(std::string_view(error.what()).size() < kLongestMessage, "messages are short");
    return;
  }
  const sotto::AllowList list(peers);  // takes what the file says
  for (const sotto::TrustedPeer& peer : peers) {
    const auto line = list.find(peer.rank);
    check(line && line->key == peer.key, "every line is in the list");
    for (const sotto::PeerKey& one : peer.keys()) {
      check(list.admitted(one.key.text()).has_value() == (peer.may_send || peer.send_to),
            "who may do something is admitted, and nobody else");
    }
  }
  const auto again = print(peers);
  check(print(sotto::parse_peers_file("peers.csv", again, numbers)) == again,
        "a list that is written down is the same list");
}

void read_peers(std::string_view /*name*/, std::span<const std::byte> input) {
  const auto text = text_of(input);
  read_list(text, sotto::PeerNumbers::ranks);
  read_list(text, sotto::PeerNumbers::of_names);
}

void read_site_list(std::string_view /*name*/, std::span<const std::byte> input) {
  const auto text = text_of(input);
  const std::size_t end = text.find('\0');
  try {
    auto plan = sotto::parse_trust_plan("sites.csv", text.substr(0, end));
    check(!plan.sites.empty(), "a plan has sites");
    if (end != std::string_view::npos) {
      sotto::take_trust_edges(plan, "trust.csv", text.substr(end + 1));
    }
    for (const auto& [from, to] : plan.edges) {
      check(from < plan.sites.size() && to < plan.sites.size() && from != to,
            "edges join sites of the plan");
      check(!plan.sites[from].observer, "an observer sends to nobody");
    }
    if (plan.sites.size() > 16) {
      return;
    }
    std::vector<sotto::PublicKey> keys;
    while (keys.size() < plan.sites.size()) {
      keys.push_back(sotto::make_key_pair().public_key);
    }
    const auto lists = sotto::peers_lists(plan, "sites.csv", keys);
    for (const std::string& list : lists) {
      (void)sotto::parse_peers_file("peers.csv", list, sotto::PeerNumbers::of_names);
    }
  } catch (const sotto::Error& error) {
    check(std::string_view(error.what()).size() < kLongestMessage, "messages are short");
  }
}

}  // namespace sotto_fuzz

// The time that neighbours use up by being late, one by one and together.
#include <sotto/sites/core/conduct/patience_account.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include "sites/core/site_network.h"

namespace sotto::test::patience_account_test {

namespace {

constexpr std::size_t kSites = 6;
constexpr int kEach = 24;  // a late site is late once in so many rounds

/// Which peers site 0 waits for after many rounds of a second, in which the first `late` others are
/// late in turn, each once in so many rounds, for a second each time.
std::vector<bool> awaited_at_last(std::size_t late, int each = kEach) {
  SiteNetworkOptions options;
  options.sites = kSites;
  SiteNetwork network(options);
  network.connect_all();
  network.deliver_all();
  for (int round = 0; round < 1500; ++round) {
    const auto misses = [&](std::size_t i) {
      return i > 0 && i <= late && (round + 8 * static_cast<int>(i)) % each == 0;
    };
    bool waited = false;
    for (std::size_t i = 0; i < kSites; ++i) {
      waited = waited || misses(i);
    }
    for (const bool after : {false, true}) {  // those that are late come when the others are done
      for (std::size_t i = 0; i < kSites; ++i) {
        if (misses(i) == after) {
          network.advance(i, false, true);
        }
      }
      network.deliver_all();
      for (std::size_t i = 0; i < kSites; ++i) {
        if (misses(i) == after) {
          network.site(i).note_time({.lasted = waited ? 2.0 : 1.0, .waited = waited ? 1.0 : 0.0});
          network.collect(i);
        }
      }
      network.deliver_all();
    }
  }
  std::vector<bool> awaited;
  for (const PeerState& peer : network.peers(0)) {
    awaited.push_back(peer.waited_for);
  }
  return awaited;
}

}  // namespace

TEST_CASE("an account is overdrawn by what is used up beyond its part of the time") {
  sites::PatienceAccount within;
  sites::PatienceAccount beyond;
  for (int round = 0; round < 10'000; ++round) {
    within.note(round % 22 == 0, {.lasted = 1, .waited = 1});
    beyond.note(round % 18 == 0, {.lasted = 1, .waited = 1});
    CHECK(!within.overdrawn());
  }
  CHECK(beyond.overdrawn());
}

TEST_CASE("core: those that are late in turn do not have a part of the time each") {
  const auto others_are_awaited = [](const std::vector<bool>& awaited, std::size_t late) {
    return std::all_of(awaited.begin() + static_cast<std::ptrdiff_t>(late), awaited.end(),
                       [](bool one) { return one; });
  };
  CHECK(others_are_awaited(awaited_at_last(0), 0));
  CHECK(others_are_awaited(awaited_at_last(1), 0));  // within its part
  const auto three = awaited_at_last(3);
  CHECK(std::ranges::count(three, false) >= 1);
  CHECK(others_are_awaited(three, 3));
  // One that uses up its own account, which is theirs together, is given up alone.
  const auto one = awaited_at_last(1, 12);
  CHECK(!one[0]);
  CHECK(others_are_awaited(one, 1));
}

}  // namespace sotto::test::patience_account_test

#include <sotto/optim/round_terms.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/xxh3.h>

namespace sotto {
namespace {

/// The two highest bits say what a stamp is of.
constexpr SettingsStamp kRateBit = 0x80000000U;
constexpr SettingsStamp kDigestBit = 0x40000000U;
constexpr SettingsStamp kDigestMask = kDigestBit - 1;

constexpr std::uint64_t kLooseSightings = 8;

float rate_of(SettingsStamp stamp) { return std::bit_cast<float>(stamp & ~kRateBit); }

}  // namespace

SettingsStamp stamp_of_rate(double learning_rate) {
  check(learning_rate >= 0 && std::isfinite(learning_rate),
        "a learning rate is finite and not negative");
  const double largest = std::numeric_limits<float>::max();
  return kRateBit |
         std::bit_cast<SettingsStamp>(static_cast<float>(std::min(learning_rate, largest)));
}

SettingsStamp stamp_of_settings(std::string_view text) {
  return kDigestBit |
         (static_cast<SettingsStamp>(xxh3(std::as_bytes(std::span(text)))) & kDigestMask);
}

bool is_stamp(SettingsStamp stamp) {
  if ((stamp & kRateBit) != 0) {
    return std::isfinite(rate_of(stamp));
  }
  return stamp == kAsAgreed || (stamp & kDigestBit) != 0;
}

float share_of_weight(double weight, double sum_of_weights, int nodes) {
  return static_cast<float>(nodes * weight / sum_of_weights);
}

Status RoundTerms::compare(Rank peer, Round round, SettingsStamp theirs, SettingsStamp own) {
  auto at = std::ranges::find(known, peer, [](const Sighting& one) { return one.difference.peer; });
  if (theirs == own) {
    if (at != known.end()) {
      at->exchanges = 0;
    }
    return {};
  }
  const SettingsDifference seen{peer, round, theirs, own};
  if (agreement == SettingsAgreement::required) {
    return {Fault::unexpected, describe(seen) +
                                   ": change a setting on all nodes after the same step, or their "
                                   "models grow apart"};
  }
  ++differing_frames;
  if (at == known.end()) {
    at = known.insert(at, {seen});
  }
  const bool stays = at->difference.theirs == theirs && at->difference.own == own;
  const bool loose = agreement == SettingsAgreement::loose;
  at->difference = seen;
  at->exchanges = loose && !stays ? 1 : at->exchanges + 1;
  // Once a neighbour, whatever it does afterwards: the counter goes on.
  if (!at->told && at->exchanges >= (loose ? kLooseSightings : 1)) {
    at->told = true;
    news.push_back(seen);
  }
  return {};
}

std::string RoundTerms::describe(const SettingsDifference& difference) const {
  const auto settings = [this](SettingsStamp of) {
    if ((of & kRateBit) != 0) {
      return fmt::format("a learning rate of {}", rate_of(of));
    }
    return of == kAsAgreed
               ? fmt::format("the settings agreed at the start, a learning rate of {}", agreed_rate)
               : std::string("settings that were changed since the start");
  };
  return fmt::format("in round {} node {} steps with {}, and this node with {}", difference.round,
                     difference.peer, settings(difference.theirs), settings(difference.own));
}

}  // namespace sotto

#include <sotto/sites/roster/roster_seeds.h>

#include <algorithm>
#include <utility>

namespace sotto::sites {
namespace {

constexpr RosterTime kAskSeeds{500};  // while joining
constexpr RosterTime kLeastPause{1'000};
constexpr RosterTime kBelowLeast{2'000};  // at most, while fewer than MIN are up
}  // namespace

RosterSeeds::RosterSeeds(const std::vector<std::string>& addresses, std::string own, RosterTime now)
    : own_(std::move(own)) {
  for (const std::string& address : addresses) {
    if (address != own_) {
      seeds_.push_back({.address = address, .next = now});
    }
  }
}

void RosterSeeds::set(const std::vector<RosterSeed>& named, RosterTime now) {
  std::vector<Seed> seeds;
  for (const RosterSeed& one : named) {
    const auto known = std::ranges::find(seeds_, one.address, &Seed::address);
    if (one.address != own_) {
      seeds.push_back(known != seeds_.end() ? *known : Seed{.address = one.address, .next = now});
      if (one.renewals < seeds.back().renewals.value_or(0)) {
        seeds.back().stranger.reset();  // another node's lease, at the same address
      }
      seeds.back().renewals = one.renewals;
    }
  }
  seeds_ = std::move(seeds);
}

void RosterSeeds::note_own(const std::string& address) {
  for (Seed& seed : seeds_) {
    if (seed.address == address) {
      seed.own = true;
      seed.asked.reset();
      seed.silent = false;
    }
  }
}

void RosterSeeds::note_own_probe(std::uint64_t nonce) {
  for (Seed& seed : seeds_) {
    seed.own = seed.own || seed.nonce == nonce;
  }
}

bool RosterSeeds::note_answer(std::uint64_t nonce) {
  bool expected = false;
  for (Seed& seed : seeds_) {
    if (seed.nonce == nonce) {
      seed.nonce.reset();
      seed.asked.reset();
      seed.stranger.reset();
      expected = true;
    }
  }
  return expected;
}

std::optional<bool> RosterSeeds::note_other(std::uint64_t nonce, const OtherRun& other) {
  const auto seed = std::ranges::find(seeds_, nonce, &Seed::nonce);
  if (seed == seeds_.end()) {
    return std::nullopt;
  }
  seed->asked.reset();  // it is there
  seed->nonce.reset();
  if (seed->renewals && !seed->stranger) {
    seed->stranger = other;  // the node that wrote the lease may be gone
    seed->believed_at = *seed->renewals + kRenewalsSeen;
    seed->silent = false;
    return false;
  }
  return true;
}

bool RosterSeeds::nobody() const { return std::ranges::all_of(seeds_, &Seed::own); }

void RosterSeeds::ask_all(RosterTime now) {
  for (Seed& seed : seeds_) {
    seed.next = now;
  }
}

std::vector<SeedProbe> RosterSeeds::due(const std::set<std::string>& reached, Pace pace,
                                        RosterTime now,
                                        const std::function<std::uint64_t()>& draw) {
  const RosterTime longest = pace.below_least ? kBelowLeast : kLongestBackOff;
  std::vector<SeedProbe> probes;
  for (Seed& seed : seeds_) {
    const bool there = seed.own || reached.contains(seed.address);
    if (there) {
      seed.asked.reset();
    }
    seed.silent = seed.asked && now - *seed.asked >= kSilentAfter;
    if (now < seed.next || seed.is_strange()) {
      continue;
    }
    seed.pause = pace.joining
                     ? kAskSeeds
                     : std::clamp(there ? RosterTime(0) : 2 * seed.pause, kLeastPause, longest);
    seed.next = now + seed.pause;
    if (!there) {
      seed.nonce = std::max<std::uint64_t>(draw(), 1);
      seed.asked = seed.asked.value_or(now);
      probes.push_back({.to = seed.address, .nonce = *seed.nonce});
    }
  }
  return probes;
}

std::vector<std::string> RosterSeeds::asked() const {
  std::vector<std::string> addresses;
  for (const Seed& seed : seeds_) {
    if (!seed.is_strange() && !seed.own) {
      addresses.push_back(seed.address);
    }
  }
  return addresses;
}

std::vector<std::string> RosterSeeds::silent() const {
  std::vector<std::string> addresses;
  for (const Seed& seed : seeds_) {
    if (seed.silent) {
      addresses.push_back(seed.address);
    }
  }
  return addresses;
}

std::vector<OtherRun> RosterSeeds::strangers() const {
  std::vector<OtherRun> runs;
  for (const Seed& seed : seeds_) {
    if (seed.is_strange()) {
      runs.push_back(*seed.stranger);
    }
  }
  return runs;
}

}  // namespace sotto::sites

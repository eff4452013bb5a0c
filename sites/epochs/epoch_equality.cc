#include <sotto/sites/epochs/epoch_equality.h>

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sotto::sites {

EqualityVerdict judge(const SaidDigests& said, std::size_t members) {
  std::map<EpochDigest, std::size_t> counts;
  for (const auto& [place, digest] : said) {
    ++counts[digest];
  }
  if (counts.size() < 2) {
    return {};
  }
  const auto most = std::ranges::max_element(
      counts, [](const auto& one, const auto& other) { return one.second < other.second; });
  if (2 * most->second <= members) {
    const std::size_t silent = members - std::min(members, said.size());
    return {.unequal = 0, .tie = 2 * (most->second + silent) <= members};
  }
  EqualityVerdict verdict;
  for (const auto& [place, digest] : said) {
    verdict.unequal |= digest == most->first ? 0 : std::uint64_t{1} << place;
  }
  return verdict;
}

std::string words_of(const SaidDigests& said, const EpochMembership& place) {
  std::vector<std::string> words;
  words.reserve(said.size());
  for (const auto& [index, digest] : said) {
    words.push_back(
        fmt::format("{} has {:016x}{:016x}", place.members[index].name, digest[1], digest[0]));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

void EpochEquality::note(std::uint16_t place, const ModelClaim& claim) {
  std::deque<ModelClaim>& kept = claims_[place];
  const auto same = [&](const ModelClaim& one) { return one.step == claim.step; };
  if (std::ranges::any_of(kept, same)) {
    return;
  }
  kept.push_back(claim);
  if (kept.size() > kKept) {
    kept.pop_front();
  }
}

SaidDigests EpochEquality::said(Round step) const {
  SaidDigests said;
  for (const auto& [place, claims] : claims_) {
    for (const ModelClaim& claim : claims) {
      if (claim.step == step) {
        said.emplace(place, claim.digest);
      }
    }
  }
  return said;
}

std::uint64_t EpochEquality::unequal(std::size_t members) const {
  std::set<Round> steps;
  for (const auto& [place, claims] : claims_) {
    for (const ModelClaim& claim : claims) {
      steps.insert(claim.step);
    }
  }
  std::uint64_t unequal = 0;
  for (const Round step : steps) {
    unequal |= judge(said(step), members).unequal;
  }
  return unequal;
}

std::optional<Round> EpochEquality::tie(std::size_t members, std::uint16_t own) const {
  const auto mine = claims_.find(own);
  if (mine == claims_.end()) {
    return std::nullopt;
  }
  for (const ModelClaim& claim : mine->second) {
    if (judge(said(claim.step), members).tie) {
      return claim.step;
    }
  }
  return std::nullopt;
}

}  // namespace sotto::sites

#include <sotto/sites/core/sums/masked_sum.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <sotto/base/bytes.h>
#include <sotto/sites/core/sums/masked_parcel.h>
#include <sotto/sites/core/sums/pair_masks.h>

namespace sotto::sites {
namespace {

/// The peers among these that agree with each other on the tags of their masks.
std::vector<std::size_t> consistent(const SumGroup& group, const SumClient::Headers& headers,
                                    std::vector<std::size_t> places) {
  // A site with a new process, or another list, has other tags than its peers: those that fit
  // fewest others are left out, until all fit. Of two that do not fit each other one may lie, and
  // nobody sees which. To leave out one alone would not do: it does not see that it is meant, and
  // answers for another choice of sites.
  const auto tag = [&](std::size_t from, std::size_t with) {
    return headers.at(from).tag_with(group.peers()[with].id);
  };
  while (!places.empty()) {
    const auto misfits = [&](std::size_t a) {
      return std::ranges::count_if(places,
                                   [&](std::size_t b) { return a != b && tag(a, b) != tag(b, a); });
    };
    const auto most = misfits(*std::ranges::max_element(places, {}, misfits));
    if (most == 0) {
      break;
    }
    std::vector<std::size_t> fit;
    std::ranges::copy_if(places, std::back_inserter(fit),
                         [&](std::size_t a) { return misfits(a) < most; });
    places = std::move(fit);
  }
  return places;
}

}  // namespace

std::vector<std::size_t> choose_summed(const SumGroup& group, const SumClient::Headers& headers) {
  std::vector<std::size_t> places;
  for (const auto& [from, header] : headers) {
    const bool all_listed = std::ranges::all_of(
        header.entries,
        [&](const MaskedHeader::Entry& entry) { return group.place_of(entry.id).has_value(); });
    if (all_listed && header.entries.size() + 1 == group.peers().size()) {
      places.push_back(from);
    }
  }
  places = consistent(group, headers, std::move(places));
  std::ranges::sort(places, {}, [&](std::size_t k) { return group.peers()[k].id; });
  return places;
}

MaskedSum::MaskedSum(const SumGroup& group, Round round, std::vector<std::size_t> members,
                     std::vector<std::uint64_t> missing, const SumClient::Headers& headers,
                     std::size_t words)
    : group_(group),
      round_(round),
      members_(std::move(members)),
      missing_(std::move(missing)),
      words_(words) {
  for (const std::size_t member : members_) {
    const MaskedHeader& header = headers.at(member);
    Summed& one = summed_[member];
    one.commitment = header.commitment;
    std::ranges::copy_if(missing_, std::back_inserter(one.masked_with),
                         [&](std::uint64_t id) { return header.tag_with(id) != 0; });
  }
}

void MaskedSum::add(std::size_t from, std::span<const std::byte> payload) {
  ByteReader in(payload);
  const auto header = read_masked_header(in);
  const auto one = summed_.find(from);
  if (!header || header->round != round_ || one == summed_.end() ||
      std::exchange(one->second.added, true)) {
    return;
  }
  std::vector<std::uint32_t> words(words_.size());
  in.read_into(std::span(words));
  for (std::size_t k = 0; k < words.size(); ++k) {
    words_[k] += words[k];
  }
}

void MaskedSum::take(std::size_t from, const Masks& answer) {
  const auto teller = summed_.find(from);
  if (answer.round != round_ || teller == summed_.end()) {
    return;
  }
  teller->second.silent = teller->second.silent || answer.revealed.empty();
  for (const RevealedMask& mask : answer.revealed) {
    if (!mask.is_share) {
      if (contains(missing_, mask.site)) {
        teller->second.seeds.insert_or_assign(mask.site, mask.value);
      }
    } else if (const auto place = group_.place_of(mask.site); place && *place != from) {
      if (const auto one = summed_.find(*place); one != summed_.end()) {
        one->second.shares.insert_or_assign(from, mask.value);
      }
    }
  }
}

bool MaskedSum::Summed::lacks_seed() const {
  return std::ranges::any_of(masked_with, [&](std::uint64_t id) { return !seeds.contains(id); });
}

std::vector<std::size_t> MaskedSum::owed() const {
  std::vector<std::size_t> owed;
  for (const std::size_t member : members_) {
    const Summed& one = summed_.at(member);
    const auto may_give = [&](const auto& other) {
      return other.first != member && lacks_shares(other.second) &&
             !other.second.shares.contains(member);
    };
    if (!one.silent && (one.lacks_seed() || std::ranges::any_of(summed_, may_give))) {
      owed.push_back(member);
    }
  }
  return owed;
}

std::optional<Secret32> MaskedSum::own_mask_of(const Summed& one) {
  // A share may be wrong: it is found by leaving out each in turn, first the one that was wrong
  // before.
  const std::size_t threshold = group_.threshold();
  std::vector<std::optional<std::size_t>> tries = {std::nullopt};
  if (wrong_) {
    tries.push_back(wrong_);
  }
  for (const auto& [holder, value] : one.shares) {
    if (tries.size() > threshold + 2) {
      break;  // beyond the first of them nothing is left out
    }
    tries.push_back(holder);
  }
  for (const std::optional<std::size_t>& without : tries) {
    std::vector<SecretShare> some;
    for (const auto& [holder, value] : one.shares) {
      if (holder != without && some.size() < threshold) {
        some.push_back({group_.peers()[holder].id, value});
      }
    }
    const auto secret = some.size() == threshold ? join_secret(some) : std::nullopt;
    if (secret && commitment(*secret) == one.commitment) {
      wrong_ = without ? without : wrong_;
      return secret;
    }
  }
  return std::nullopt;
}

SumOutcome MaskedSum::finish(std::span<const std::uint32_t> own, std::span<float> mean) {
  const bool answered = std::ranges::all_of(summed_, [&](const auto& one) {
    return one.second.added && !one.second.lacks_seed() && !lacks_shares(one.second);
  });
  if (!answered) {
    return SumOutcome::unanswered;
  }
  bool equal = true;
  for (const std::size_t member : members_) {
    const Summed& one = summed_.at(member);
    const auto mask = own_mask_of(one);
    equal = equal && mask.has_value();
    if (mask) {
      add_mask(*mask, true, words_);
    }
    for (const std::uint64_t id : one.masked_with) {
      add_mask(one.seeds.at(id), group_.peers()[member].id < id, words_);
    }
  }
  const auto count = static_cast<std::uint32_t>(members_.size());
  equal = equal && std::all_of(words_.end() - kSentinels, words_.end(),
                               [&](std::uint32_t word) { return word == count; });
  if (!equal) {
    return SumOutcome::unequal;
  }
  const double step = 1 / (group_.scale() * (count + 1.0));
  for (std::size_t k = 0; k < mean.size(); ++k) {
    const auto total = static_cast<std::int32_t>(words_[k] + own[k]);
    mean[k] = static_cast<float>(static_cast<double>(total) * step);
  }
  return SumOutcome::summed;
}

}  // namespace sotto::sites

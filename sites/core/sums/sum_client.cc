#include <sotto/sites/core/sums/sum_client.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/sites/core/sums/pair_masks.h>

namespace sotto::sites {
namespace {

// What this site's secret is hashed with, besides pair_masks.h and secure_sum.cc.
constexpr std::uint64_t kForOwnMask = 11;
constexpr std::uint64_t kForCoefficients = 12;

/// Rounds before the latest one, and after it, of which something is kept.
constexpr Round kRemembered = 3;

}  // namespace

SumClient::SumClient(const SumGroup& group, const Bytes32& secret, std::size_t dimension)
    : group_(group), secret_(secret), words_(dimension + kSentinels, 1U) {}

void SumClient::begin_anew(const Bytes32& secret) {
  secret_ = secret;
  round_ = 0;
  forget();
}

void SumClient::forget() {
  held_.clear();
  shares_.clear();
}

void SumClient::open(Round round, std::span<const float> model) {
  check(model.size() + kSentinels == words_.size(), "a model has the dimension of the sum");
  check(round > round_, "masks are used once");
  round_ = round;
  std::erase_if(held_, [&](const auto& held) { return held.first + kRemembered < round; });
  Held& held = held_[round];
  held.opened = true;
  held.shared.clear();
  shares_.clear();
  for (std::size_t k = 0; k < group_.peers().size(); ++k) {
    held.shared.push_back(group_.peers()[k].shared);
    shares_.push_back(shares_for(round, k));
  }
  clipped_ = 0;
  const double steps = group_.scale();
  const double range = group_.range();
  for (std::size_t k = 0; k < model.size(); ++k) {
    const double value = model[k];
    clipped_ += std::abs(value) > range ? 1U : 0U;
    const double whole = std::nearbyint(std::clamp(value, -range, range) * steps);
    words_[k] = static_cast<std::uint32_t>(static_cast<std::int32_t>(whole));
  }
}

Secret32 SumClient::own_mask(Round round, std::uint64_t receiver) const {
  return derived_scalar(secret_, std::array{kForOwnMask, round, receiver});
}

std::vector<SecretShare> SumClient::shares_for(Round round, std::size_t receiver) const {
  const std::uint64_t id = group_.peers()[receiver].id;
  std::vector<Secret32> coefficients;
  for (std::uint64_t power = 1; power < group_.threshold(); ++power) {
    coefficients.push_back(derived_scalar(secret_, std::array{kForCoefficients, round, id, power}));
  }
  std::vector<std::uint64_t> points;
  for (const SumGroup::Member& member : group_.peers()) {
    points.push_back(member.id);
  }
  return split_secret(own_mask(round, id), coefficients, points);
}

Payload SumClient::payload_for(std::size_t receiver) const {
  const auto members = group_.peers();
  const Held& held = held_.at(round_);
  std::vector<std::size_t> others;
  for (std::size_t k = 0; k < members.size(); ++k) {
    if (k != receiver) {
      others.push_back(k);
    }
  }
  std::ranges::sort(others, {}, [&](std::size_t k) { return members[k].id; });
  const auto masked =
      std::ranges::count_if(others, [&](std::size_t k) { return held.shared[k].has_value(); });
  if (static_cast<std::size_t>(masked) + 1 < group_.least_members()) {
    return nullptr;
  }
  const Secret32 own = own_mask(round_, members[receiver].id);
  std::vector<std::uint32_t> words = words_;
  add_mask(own, false, words);
  MaskedHeader header = {.round = round_, .entries = {}, .commitment = commitment(own)};
  for (const std::size_t k : others) {
    const std::uint64_t id = members[k].id;
    const auto& shared = held.shared[k];
    // The share that the receiver holds of this site's mask for that other one.
    header.entries.push_back({id, shared ? tag_of(*shared) : 0, shares_[k][receiver].value});
    if (shared) {
      add_mask(mask_seed(*shared, members[receiver].id, round_), group_.id() > id, words);
    }
  }
  return masked_payload(header, words);
}

SumAnswers SumClient::arrived(std::size_t from, std::span<const std::byte> payload) {
  ByteReader in(payload);
  auto header = read_masked_header(in);
  check(header.has_value(), "a payload was checked");
  const Round round = header->round;
  if (round + kRemembered < round_ || round > round_ + kRemembered) {
    return {};
  }
  Held& held = held_[round];
  if (!held.headers.try_emplace(from, std::move(*header)).second) {
    return {};  // a second one of a round
  }
  const std::uint64_t sender = group_.peers()[from].id;
  SumAnswers due;
  for (const std::size_t asker : held.askers) {
    const bool in_set = !contains(held.missing, sender) && from != asker;
    if (const Bytes32* share = share_of(held, from, asker); in_set && share != nullptr) {
      due.push_back({asker, {.round = round, .revealed = {{sender, true, *share}}}});
    }
  }
  return due;
}

const Bytes32* SumClient::share_of(const Held& held, std::size_t from, std::size_t receiver) const {
  const auto header = held.headers.find(from);
  if (header == held.headers.end()) {
    return nullptr;
  }
  const auto* const entry = header->second.about(group_.peers()[receiver].id);
  return entry == nullptr ? nullptr : &entry->share;
}

Result<std::optional<std::vector<RevealedMask>>> SumClient::answer(std::size_t receiver,
                                                                   const Unmask& question) {
  using Answer = std::optional<std::vector<RevealedMask>>;
  const std::uint64_t asker = group_.peers()[receiver].id;
  const auto known = [&](std::uint64_t id) { return id == group_.id() || group_.place_of(id); };
  if (!std::ranges::all_of(question.sites, known)) {
    return Answer(std::in_place);  // the lists differ
  }
  if (!contains(question.sites, group_.id()) || contains(question.sites, asker)) {
    return Status(Fault::unexpected,
                  fmt::format("a question about the sum of {} sites", question.sites.size()));
  }
  const auto at = held_.find(question.round);
  if (at == held_.end() || !at->second.opened || question.sites.size() < group_.least_members()) {
    return Answer(std::in_place);
  }
  Held& held = at->second;
  if (!held.closed) {
    held.questions.insert_or_assign(receiver, question);
    return Answer();
  }
  std::size_t masked = 0;
  for (const std::uint64_t id : question.sites) {
    masked += id != group_.id() && held.shared[*group_.place_of(id)] ? 1U : 0U;
  }
  // This site's own choice, as seen by another receiver.
  std::vector<std::uint64_t> missing = held.missing;
  std::erase(missing, asker);
  if (masked + 1 < group_.least_members() || missing != group_.others_than(question.sites, asker)) {
    return Answer(std::in_place);
  }
  if (std::ranges::find(held.askers, receiver) == held.askers.end()) {
    held.askers.push_back(receiver);
  }
  return Answer(reveal(held, question.round, receiver, missing));
}

std::vector<RevealedMask> SumClient::reveal(const Held& held, Round round, std::size_t receiver,
                                            std::span<const std::uint64_t> missing) const {
  const auto members = group_.peers();
  std::vector<RevealedMask> revealed;
  for (std::size_t k = 0; k < members.size(); ++k) {
    const std::uint64_t id = members[k].id;
    if (contains(missing, id)) {
      if (held.shared[k]) {
        revealed.push_back({id, false, mask_seed(*held.shared[k], members[receiver].id, round)});
      }
    } else if (k != receiver) {
      if (const Bytes32* share = share_of(held, k, receiver); share != nullptr) {
        revealed.push_back({id, true, *share});
      }
    }
  }
  return revealed;
}

SumAnswers SumClient::answers_due() {
  SumAnswers due;
  const auto at = held_.find(round_);
  if (at == held_.end() || !at->second.closed) {
    return due;
  }
  for (const auto& [receiver, question] : std::exchange(at->second.questions, {})) {
    if (auto revealed = answer(receiver, question); revealed.ok() && *revealed) {
      due.push_back({receiver, {.round = round_, .revealed = std::move(**revealed)}});
    }
  }
  return due;
}

const SumClient::Headers* SumClient::headers() const {
  const auto at = held_.find(round_);
  return at == held_.end() || !at->second.opened ? nullptr : &at->second.headers;
}

void SumClient::close(std::vector<std::uint64_t> missing) {
  Held& held = held_.at(round_);
  held.closed = true;
  held.missing = std::move(missing);
}

}  // namespace sotto::sites

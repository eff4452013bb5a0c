#include <sotto/sites/core/sums/secure_sum.h>

#include <sodium.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>

namespace sotto::sites {
namespace {

// What this site's secret is hashed with, besides pair_masks.h.
constexpr std::uint64_t kForOwnMask = 11;
constexpr std::uint64_t kForCoefficients = 12;
constexpr std::uint64_t kForKeys = 13;
constexpr std::uint64_t kForNext = 14;

bool contains(std::span<const std::uint64_t> ids, std::uint64_t id) {
  return std::ranges::binary_search(ids, id);
}

}  // namespace

std::uint64_t site_id(std::string_view name) {
  std::uint64_t id = 0;
  std::array<unsigned char, crypto_generichash_BYTES> hash{};
  crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(name.data()),
                     name.size(), nullptr, 0);
  std::memcpy(&id, hash.data(), sizeof id);
  return std::max<std::uint64_t>(id, 1);
}

SecureSum::SecureSum(SecureSumRule rule, std::string_view name, const Bytes32& secret,
                     std::size_t dimension)
    : rule_(rule),
      id_(site_id(name)),
      secret_(secret),
      dimension_(dimension),
      quantized_(dimension + kSentinels) {
  begin_anew();
}

void SecureSum::begin_anew() {
  keys_ = std::make_unique<MaskKeys>(derived_scalar(secret_, std::array{kForKeys, generation_}));
  secret_ = derived_scalar(secret_, std::array{kForNext, generation_++});
  round_ = 0;
  for (Member& member : members_) {
    member.shared.reset();
  }
  held_.clear();
  shares_.clear();
  summing_.reset();
}

std::size_t SecureSum::max_payload() const {
  return sizeof(Round) + sizeof(std::uint16_t) + kMostSites * kMemberBytes + sizeof(Bytes32) +
         quantized_.size() * sizeof(std::uint32_t);
}

std::optional<SecureSum::Header> SecureSum::read_header(ByteReader& in) {
  Header header;
  header.round = in.read<Round>();
  const auto count = in.read<std::uint16_t>();
  if (in.failed() || count >= kMostSites) {
    return std::nullopt;
  }
  for (std::uint16_t k = 0; k < count; ++k) {
    Entry& entry = header.entries.emplace_back();
    entry.id = in.read<std::uint64_t>();
    entry.tag = in.read<std::uint64_t>();
    in.read_into(std::span<std::uint8_t>(entry.share));
  }
  in.read_into(std::span<std::uint8_t>(header.commitment));
  if (in.failed()) {
    return std::nullopt;
  }
  return header;
}

Status SecureSum::check_payload(std::span<const std::byte> payload) const {
  ByteReader in(payload);
  const auto header = read_header(in);
  if (!header || in.remaining() != quantized_.size() * sizeof(std::uint32_t)) {
    return {Fault::malformed, fmt::format("a masked parcel of {} bytes", payload.size())};
  }
  const bool ascending = std::ranges::adjacent_find(header->entries, std::greater_equal(),
                                                    &Entry::id) == header->entries.end();
  if (!ascending) {
    return {Fault::malformed, "a masked parcel whose sites are not in their order"};
  }
  return {};
}

// The sites that take part.

void SecureSum::know(std::span<const std::string> names) {
  std::vector<Member> next;
  for (const std::string& name : names) {
    const auto old = std::ranges::find(members_, name, &Member::name);
    next.push_back(old == members_.end() ? Member{.name = name, .id = site_id(name), .shared = {}}
                                         : *old);
  }
  members_ = std::move(next);
  held_.clear();
  shares_.clear();
  summing_.reset();
}

bool SecureSum::take_key(std::size_t peer, const Bytes32& key) {
  members_[peer].shared = keys_->shared_with(id_, members_[peer].id, key);
  return members_[peer].shared.has_value();
}

std::optional<std::size_t> SecureSum::place_of(std::uint64_t id) const {
  const auto at = std::ranges::find(members_, id, &Member::id);
  return at == members_.end() ? std::nullopt
                              : std::optional(static_cast<std::size_t>(at - members_.begin()));
}

double SecureSum::scale() const {
  constexpr double kLargest = std::numeric_limits<std::int32_t>::max();
  return std::floor(kLargest / static_cast<double>(members_.size() + 1)) / rule_.range;
}

// As a client.

void SecureSum::open(Round round, std::span<const float> model) {
  check(model.size() == dimension_, "a model has the dimension of the sum");
  check(round > round_, "masks are used once");
  round_ = round;
  std::erase_if(held_, [&](const auto& held) { return held.first + kRemembered < round; });
  summing_.reset();
  Held& held = held_[round];
  held.opened = true;
  held.shared.clear();
  for (const Member& member : members_) {
    held.shared.push_back(member.shared);
  }
  shares_.clear();
  for (std::size_t k = 0; k < members_.size(); ++k) {
    shares_.push_back(shares_for(round, k));
  }
  clipped_ = 0;
  const double steps = scale();
  for (std::size_t k = 0; k < dimension_; ++k) {
    const double value = model[k];
    clipped_ += std::abs(value) > rule_.range ? 1U : 0U;
    const double whole = std::nearbyint(std::clamp(value, -rule_.range, rule_.range) * steps);
    quantized_[k] = static_cast<std::uint32_t>(static_cast<std::int32_t>(whole));
  }
  std::fill_n(quantized_.begin() + static_cast<std::ptrdiff_t>(dimension_), kSentinels, 1U);
}

Secret32 SecureSum::own_mask(Round round, std::uint64_t receiver) const {
  return derived_scalar(secret_, std::array{kForOwnMask, round, receiver});
}

std::vector<SecretShare> SecureSum::shares_for(Round round, std::size_t receiver) const {
  const std::uint64_t id = members_[receiver].id;
  std::vector<Secret32> coefficients;
  for (std::uint64_t power = 1; power < threshold(); ++power) {
    coefficients.push_back(derived_scalar(secret_, std::array{kForCoefficients, round, id, power}));
  }
  std::vector<std::uint64_t> points;
  for (const Member& member : members_) {
    points.push_back(member.id);
  }
  return split_secret(own_mask(round, id), coefficients, points);
}

Payload SecureSum::payload_for(std::size_t receiver) const {
  const Held& held = held_.at(round_);
  std::vector<std::size_t> others;
  for (std::size_t k = 0; k < members_.size(); ++k) {
    if (k != receiver) {
      others.push_back(k);
    }
  }
  std::ranges::sort(others, {}, [&](std::size_t k) { return members_[k].id; });
  const auto masked =
      std::ranges::count_if(others, [&](std::size_t k) { return held.shared[k].has_value(); });
  if (static_cast<std::size_t>(masked) + 1 < least_members()) {
    return nullptr;
  }
  const Secret32 own = own_mask(round_, members_[receiver].id);
  std::vector<std::uint32_t> words = quantized_;
  add_mask(own, false, words);
  ByteBuffer out;
  out.write(round_);
  out.write(static_cast<std::uint16_t>(others.size()));
  for (const std::size_t k : others) {
    const Member& other = members_[k];
    out.write(other.id);
    out.write(held.shared[k] ? tag_of(*held.shared[k]) : std::uint64_t{0});
    // The share that the receiver holds of this site's mask for `other`.
    const Bytes32& share = shares_[k][receiver].value;
    out.write_span(std::span<const std::uint8_t>(share));
    if (held.shared[k]) {
      add_mask(mask_seed(*held.shared[k], members_[receiver].id, round_), id_ > other.id, words);
    }
  }
  const Bytes32 committed = commitment(own);
  out.write_span(std::span<const std::uint8_t>(committed));
  out.write_span(std::span<const std::uint32_t>(words));
  return std::make_shared<const std::vector<std::byte>>(std::move(out).take());
}

std::vector<std::pair<std::size_t, Masks>> SecureSum::arrived(std::size_t from,
                                                              std::span<const std::byte> payload) {
  ByteReader in(payload);
  auto header = read_header(in);
  check(header.has_value(), "a payload was checked");
  const Round round = header->round;
  if (round + kRemembered < round_ || round > round_ + kRemembered) {
    return {};
  }
  Held& held = held_[round];
  if (!held.headers.try_emplace(from, std::move(*header)).second) {
    return {};  // a second one of a round
  }
  std::vector<std::pair<std::size_t, Masks>> due;
  for (const std::size_t asker : held.askers) {
    const bool in_set = !contains(held.missing, members_[from].id) && from != asker;
    if (const Bytes32* share = share_of(held, from, asker); in_set && share != nullptr) {
      due.push_back({asker, {.round = round, .revealed = {{members_[from].id, true, *share}}}});
    }
  }
  return due;
}

const Bytes32* SecureSum::share_of(const Held& held, std::size_t from, std::size_t receiver) const {
  const auto header = held.headers.find(from);
  if (header == held.headers.end()) {
    return nullptr;
  }
  const auto& entries = header->second.entries;
  const auto at = std::ranges::find(entries, members_[receiver].id, &Entry::id);
  return at == entries.end() ? nullptr : &at->share;
}

std::vector<std::uint64_t> SecureSum::others_than(std::span<const std::uint64_t> set,
                                                  std::uint64_t receiver) const {
  std::vector<std::uint64_t> missing;
  for (const Member& member : members_) {
    if (member.id != receiver && !contains(set, member.id)) {
      missing.push_back(member.id);
    }
  }
  std::ranges::sort(missing);
  return missing;
}

Result<std::optional<std::vector<RevealedMask>>> SecureSum::answer(std::size_t receiver,
                                                                   const Unmask& question) {
  using Answer = std::optional<std::vector<RevealedMask>>;
  const std::uint64_t asker = members_[receiver].id;
  const auto known = [&](std::uint64_t id) { return id == id_ || place_of(id).has_value(); };
  if (!std::ranges::all_of(question.sites, known)) {
    return Answer(std::in_place);  // the lists differ
  }
  if (!contains(question.sites, id_) || contains(question.sites, asker)) {
    return Status(Fault::unexpected,
                  fmt::format("a question about the sum of {} sites", question.sites.size()));
  }
  const auto at = held_.find(question.round);
  if (at == held_.end() || !at->second.opened || question.sites.size() < least_members()) {
    return Answer(std::in_place);
  }
  Held& held = at->second;
  if (!held.closed) {
    held.questions.insert_or_assign(receiver, question);
    return Answer();
  }
  std::size_t masked = 0;
  for (const std::uint64_t id : question.sites) {
    masked += id != id_ && held.shared[*place_of(id)] ? 1U : 0U;
  }
  // This site's own choice, as seen by another receiver.
  std::vector<std::uint64_t> missing = held.missing;
  std::erase(missing, asker);
  if (masked + 1 < least_members() || missing != others_than(question.sites, asker)) {
    return Answer(std::in_place);
  }
  if (std::ranges::find(held.askers, receiver) == held.askers.end()) {
    held.askers.push_back(receiver);
  }
  std::vector<RevealedMask> revealed;
  for (std::size_t k = 0; k < members_.size(); ++k) {
    const Member& other = members_[k];
    if (contains(missing, other.id)) {
      if (held.shared[k]) {
        revealed.push_back({other.id, false, mask_seed(*held.shared[k], asker, question.round)});
      }
    } else if (k != receiver) {
      if (const Bytes32* share = share_of(held, k, receiver); share != nullptr) {
        revealed.push_back({other.id, true, *share});
      }
    }
  }
  return Answer(std::move(revealed));
}

std::vector<std::pair<std::size_t, Masks>> SecureSum::answers_due() {
  std::vector<std::pair<std::size_t, Masks>> due;
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

// As a receiver.

std::uint64_t SecureSum::tag_between(const Held& held, std::size_t from, std::uint64_t id) const {
  const auto& entries = held.headers.at(from).entries;
  const auto at = std::ranges::find(entries, id, &Entry::id);
  return at == entries.end() ? 0 : at->tag;
}

std::vector<std::size_t> SecureSum::consistent(const Held& held,
                                               std::vector<std::size_t> places) const {
  // A site with a new process, or another list, has other tags than its peers: those that fit
  // fewest others are left out, until all fit. Of two that do not fit each other one may lie, and
  // nobody sees which. To leave out one alone would not do: it does not see that it is meant, and
  // answers for another choice of sites.
  while (!places.empty()) {
    const auto misfits = [&](std::size_t a) {
      return std::ranges::count_if(places, [&](std::size_t b) {
        return a != b &&
               tag_between(held, a, members_[b].id) != tag_between(held, b, members_[a].id);
      });
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

std::optional<Unmask> SecureSum::close() {
  summing_.reset();
  const auto at = held_.find(round_);
  if (at == held_.end() || !at->second.opened) {
    return std::nullopt;
  }
  std::vector<std::size_t> places;
  for (const auto& [from, header] : at->second.headers) {
    const bool all_listed = std::ranges::all_of(
        header.entries, [&](const Entry& entry) { return place_of(entry.id).has_value(); });
    if (all_listed && header.entries.size() + 1 == members_.size()) {
      places.push_back(from);
    }
  }
  places = consistent(at->second, std::move(places));
  std::ranges::sort(places, {}, [&](std::size_t k) { return members_[k].id; });
  Unmask question;
  question.round = round_;
  for (const std::size_t k : places) {
    question.sites.push_back(members_[k].id);
  }
  at->second.closed = true;
  at->second.missing = others_than(question.sites, id_);
  if (places.size() < least_members()) {
    return std::nullopt;
  }
  Summing sum;
  sum.members = std::move(places);
  sum.missing = at->second.missing;
  sum.words.resize(quantized_.size());
  summing_ = std::move(sum);
  return question;
}

std::vector<std::size_t> SecureSum::members() const {
  return summing_ ? summing_->members : std::vector<std::size_t>();
}

void SecureSum::add(std::size_t from, std::span<const std::byte> payload) {
  ByteReader in(payload);
  const auto header = read_header(in);
  const auto is_in = [&](const std::vector<std::size_t>& places) {
    return std::ranges::find(places, from) != places.end();
  };
  if (!summing_ || !header || header->round != round_ || !is_in(summing_->members) ||
      is_in(summing_->added)) {
    return;
  }
  std::vector<std::uint32_t> words(quantized_.size());
  in.read_into(std::span(words));
  for (std::size_t k = 0; k < words.size(); ++k) {
    summing_->words[k] += words[k];
  }
  summing_->added.push_back(from);
}

void SecureSum::take(std::size_t from, const Masks& answer) {
  if (!summing_ || answer.round != round_ ||
      std::ranges::find(summing_->members, from) == summing_->members.end()) {
    return;
  }
  if (answer.revealed.empty()) {
    summing_->silent.push_back(from);
  }
  for (const RevealedMask& mask : answer.revealed) {
    const auto place = place_of(mask.site);
    if (mask.is_share && place && *place != from) {
      summing_->shares[*place].insert_or_assign(from, mask.value);
    } else if (!mask.is_share && contains(summing_->missing, mask.site)) {
      summing_->seeds.insert_or_assign({from, mask.site}, mask.value);
    }
  }
}

bool SecureSum::lacks_seed(std::size_t member, const Held& held) const {
  return std::ranges::any_of(summing_->missing, [&](std::uint64_t id) {
    return tag_between(held, member, id) != 0 && !summing_->seeds.contains({member, id});
  });
}

bool SecureSum::lacks_shares(std::size_t member) const {
  const auto shares = summing_->shares.find(member);
  return shares == summing_->shares.end() || shares->second.size() < threshold();
}

std::vector<std::size_t> SecureSum::owed() const {
  std::vector<std::size_t> owed;
  if (!summing_) {
    return owed;
  }
  const Held& held = held_.at(round_);
  for (const std::size_t member : summing_->members) {
    const auto may_give = [&](std::size_t other) {
      const auto shares = summing_->shares.find(other);
      return other != member && lacks_shares(other) &&
             (shares == summing_->shares.end() || !shares->second.contains(member));
    };
    const bool silent = std::ranges::find(summing_->silent, member) != summing_->silent.end();
    if (!silent && (lacks_seed(member, held) || std::ranges::any_of(summing_->members, may_give))) {
      owed.push_back(member);
    }
  }
  return owed;
}

std::optional<Secret32> SecureSum::joined(std::size_t member, const Bytes32& commitment) {
  const auto at = summing_->shares.find(member);
  if (at == summing_->shares.end() || at->second.size() < threshold()) {
    return std::nullopt;
  }
  // One may be wrong: it is found by leaving out each in turn, first the one that was wrong before.
  std::vector<std::optional<std::size_t>> tries = {std::nullopt};
  if (summing_->wrong) {
    tries.push_back(summing_->wrong);
  }
  for (const auto& [holder, value] : at->second) {
    if (tries.size() > threshold() + 2) {
      break;  // beyond the first of them nothing is left out
    }
    tries.push_back(holder);
  }
  for (const std::optional<std::size_t>& without : tries) {
    std::vector<SecretShare> some;
    for (const auto& [holder, value] : at->second) {
      if (holder != without && some.size() < threshold()) {
        some.push_back({members_[holder].id, value});
      }
    }
    const auto secret = some.size() == threshold() ? join_secret(some) : std::nullopt;
    if (secret && sites::commitment(*secret) == commitment) {
      summing_->wrong = without ? without : summing_->wrong;
      return secret;
    }
  }
  return std::nullopt;
}

SumOutcome SecureSum::finish(std::span<float> mean) {
  if (!summing_) {
    return SumOutcome::none;
  }
  const Held& held = held_.at(round_);
  std::vector<std::uint32_t>& words = summing_->words;
  bool answered = summing_->added.size() == summing_->members.size();
  bool equal = true;
  for (const std::size_t member : summing_->members) {
    answered = answered && !lacks_seed(member, held) && !lacks_shares(member);
    if (!answered) {
      break;
    }
    const auto own = joined(member, held.headers.at(member).commitment);
    equal = equal && own.has_value();
    if (own) {
      add_mask(*own, true, words);
    }
    for (const std::uint64_t id : summing_->missing) {
      if (tag_between(held, member, id) != 0) {
        add_mask(summing_->seeds.at({member, id}), members_[member].id < id, words);
      }
    }
  }
  const auto count = static_cast<std::uint32_t>(summing_->members.size());
  equal = equal && std::all_of(words.end() - kSentinels, words.end(),
                               [&](std::uint32_t word) { return word == count; });
  if (answered && equal) {
    const double step = 1 / (scale() * (count + 1.0));
    for (std::size_t k = 0; k < dimension_; ++k) {
      const auto total = static_cast<std::int32_t>(words[k] + quantized_[k]);
      mean[k] = static_cast<float>(static_cast<double>(total) * step);
    }
  }
  summing_.reset();
  return !answered ? SumOutcome::unanswered : equal ? SumOutcome::summed : SumOutcome::unequal;
}

}  // namespace sotto::sites

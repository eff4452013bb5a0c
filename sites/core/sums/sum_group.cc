#include <sotto/sites/core/sums/sum_group.h>

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace sotto::sites {

std::uint64_t site_id(std::string_view name) {
  std::uint64_t id = 0;
  std::array<unsigned char, crypto_generichash_BYTES> hash{};
  crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(name.data()),
                     name.size(), nullptr, 0);
  std::memcpy(&id, hash.data(), sizeof id);
  return std::max<std::uint64_t>(id, 1);
}

bool contains(std::span<const std::uint64_t> ids, std::uint64_t id) {
  return std::ranges::binary_search(ids, id);
}

SumGroup::SumGroup(SecureSumRule rule, std::string_view name, const Bytes32& secret)
    : rule_(rule), id_(site_id(name)), keys_(std::in_place, secret) {}

std::optional<std::size_t> SumGroup::place_of(std::uint64_t id) const {
  const auto at = std::ranges::find(peers_, id, &Member::id);
  return at == peers_.end() ? std::nullopt
                            : std::optional(static_cast<std::size_t>(at - peers_.begin()));
}

std::vector<std::uint64_t> SumGroup::others_than(std::span<const std::uint64_t> set,
                                                 std::uint64_t receiver) const {
  std::vector<std::uint64_t> others;
  for (const Member& peer : peers_) {
    if (peer.id != receiver && !contains(set, peer.id)) {
      others.push_back(peer.id);
    }
  }
  std::ranges::sort(others);
  return others;
}

std::size_t SumGroup::least_members() const {
  return std::max(rule_.colluders + 2, (sites() + rule_.colluders + 2) / 2);
}

double SumGroup::scale() const {
  constexpr double kLargest = std::numeric_limits<std::int32_t>::max();
  return std::floor(kLargest / static_cast<double>(sites())) / rule_.range;
}

void SumGroup::know(std::span<const std::string> names) {
  std::vector<Member> next;
  for (const std::string& name : names) {
    const auto old = std::ranges::find(peers_, name, &Member::name);
    next.push_back(old == peers_.end() ? Member{.name = name, .id = site_id(name), .shared = {}}
                                       : *old);
  }
  peers_ = std::move(next);
}

void SumGroup::begin_anew(const Bytes32& secret) {
  keys_.emplace(secret);
  for (Member& peer : peers_) {
    peer.shared.reset();
  }
}

bool SumGroup::take_key(std::size_t peer, const Bytes32& key) {
  peers_[peer].shared = keys_->shared_with(id_, peers_[peer].id, key);
  return peers_[peer].shared.has_value();
}

}  // namespace sotto::sites

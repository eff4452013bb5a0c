#include <sotto/sites/core/sums/secure_sum.h>

#include <array>
#include <utility>

namespace sotto::sites {
namespace {

// What the site's secret is hashed with, besides sum_client.cc and pair_masks.h.
constexpr std::uint64_t kForKeys = 13;
constexpr std::uint64_t kForNext = 14;

/// The secret half of a generation's key.
Secret32 key_secret(const Bytes32& secret, std::uint64_t generation) {
  return derived_scalar(secret, std::array{kForKeys, generation});
}

Secret32 next_secret(const Bytes32& secret, std::uint64_t generation) {
  return derived_scalar(secret, std::array{kForNext, generation});
}

}  // namespace

SecureSum::SecureSum(SecureSumRule rule, std::string_view name, const Bytes32& secret,
                     std::size_t dimension)
    : secret_(next_secret(secret, generation_)),
      group_(rule, name, key_secret(secret, generation_)),
      client_(group_, secret_, dimension) {}

void SecureSum::begin_anew() {
  ++generation_;
  group_.begin_anew(key_secret(secret_, generation_));
  secret_ = next_secret(secret_, generation_);
  client_.begin_anew(secret_);
  sum_.reset();
}

void SecureSum::open(Round round, std::span<const float> model) {
  client_.open(round, model);
  sum_.reset();
}

void SecureSum::know(std::span<const std::string> names) {
  group_.know(names);
  client_.forget();
  sum_.reset();
}

std::optional<Unmask> SecureSum::close() {
  sum_.reset();
  const SumClient::Headers* const headers = client_.headers();
  if (headers == nullptr) {
    return std::nullopt;
  }
  std::vector<std::size_t> chosen = choose_summed(group_, *headers);
  Unmask question;
  question.round = client_.round();
  for (const std::size_t k : chosen) {
    question.sites.push_back(group_.peers()[k].id);
  }
  std::vector<std::uint64_t> missing = group_.others_than(question.sites, group_.id());
  client_.close(missing);
  if (chosen.size() < least_members()) {
    return std::nullopt;
  }
  sum_.emplace(group_, client_.round(), std::move(chosen), std::move(missing), *headers,
               client_.words().size());
  return question;
}

SumOutcome SecureSum::finish(std::span<float> mean) {
  const SumOutcome outcome = sum_ ? sum_->finish(client_.words(), mean) : SumOutcome::none;
  sum_.reset();
  return outcome;
}

}  // namespace sotto::sites

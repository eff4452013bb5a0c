#include <sotto/optim/exchange/late_gossip.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <sotto/optim/exchange/exact_part.h>

namespace sotto {
namespace {

std::span<const std::byte> before_both_parts(std::span<const std::byte> payload) {
  return before_exact_part(before_exact_part(payload));
}

}  // namespace

std::size_t LateGossip::max_bytes(std::size_t elements) {
  return 2 * max_exact_part_bytes(elements);
}

std::size_t LateGossip::append(std::span<std::byte> payload, std::size_t bytes) {
  if (late_.empty()) {
    return bytes;
  }
  bytes = append_exact_part(late_.variances(), payload, bytes);
  their_ages_.assign(late_.ages().begin(), late_.ages().end());
  return append_exact_part(their_ages_, payload, bytes);
}

EncodingIn LateGossip::encoding_in() const {
  return late_.empty() ? whole_payload : before_both_parts;
}

Status LateGossip::read(const LocalNode& node, Mailbox& mail) {
  if (late_.empty()) {
    return {};
  }
  const auto own = late_.variances();
  ages_.assign(late_.ages().begin(), late_.ages().end());
  variances_.assign(own.begin(), own.end());
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (ages_[i] <= static_cast<float>(late_.learning())) {
      variances_[i] *= node.self_weight();
    }
  }
  for (std::size_t edge = 0; edge < mail.from().size(); ++edge) {
    their_ages_.assign(own.size(), 0);
    theirs_.assign(own.size(), 0);
    const auto before = add_exact_part(mail.payload(edge), their_ages_);
    const auto encoding = before.ok() ? add_exact_part(*before, theirs_) : before;
    const Status status = encoding.ok() ? add(mail.from()[edge].weight) : encoding.status();
    if (!status.ok()) {
      return mail.refuse(edge, status);
    }
  }
  return {};
}

Status LateGossip::add(float weight) {
  const auto learning = static_cast<float>(late_.learning());
  const auto agreement = static_cast<float>(late_.agreement());
  for (std::size_t i = 0; i < theirs_.size(); ++i) {
    const auto own_age = static_cast<float>(late_.ages()[i]);
    const float age = their_ages_[i];
    const bool possible = age >= 0 && age <= learning + agreement && age == std::floor(age) &&
                          theirs_[i] >= 0 && (age > 0 || theirs_[i] == 0);
    // Ages differ only until the news of the first gradient has reached all nodes.
    if (!possible || (age != own_age && std::max(age, own_age) > agreement)) {
      return {Fault::malformed, "its variances of late elements do not fit this node's"};
    }
    variances_[i] = own_age > learning ? std::max(variances_[i], theirs_[i])
                                       : variances_[i] + weight * theirs_[i];
    ages_[i] = std::max(ages_[i], age);
  }
  return {};
}

void LateGossip::take() {
  if (late_.empty()) {
    return;
  }
  std::ranges::copy(variances_, late_.variances().begin());
  std::ranges::transform(ages_, late_.ages().begin(),
                         [](float age) { return static_cast<std::uint32_t>(age); });
}

}  // namespace sotto

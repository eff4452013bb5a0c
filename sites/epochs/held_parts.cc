#include <sotto/sites/epochs/held_parts.h>

#include <utility>

namespace sotto::sites {

std::optional<WholeMean> HeldParts::add(const EpochNode& from, const PartMessage& part) {
  if (senders_.size() >= kMostEpochMembers && !senders_.contains(from)) {
    return std::nullopt;
  }
  Sent& sent = senders_[from];
  if (sent.count != part.parts || sent.digest != part.digest) {
    sent = {.count = part.parts, .digest = part.digest};
  }
  sent.parts.try_emplace(part.part, MeanPart{part.who, part.encoding});
  if (sent.parts.size() < sent.count) {
    return std::nullopt;
  }
  WholeMean whole{.mean = {.step = part.step, .parts = {}}, .digest = sent.digest};
  whole.mean.parts.reserve(sent.count);
  for (auto& [place, one] : sent.parts) {
    whole.mean.parts.push_back(std::move(one));
  }
  senders_.erase(from);
  return whole;
}

std::size_t HeldParts::count() const {
  std::size_t count = 0;
  for (const auto& [sender, sent] : senders_) {
    count += sent.parts.size();
  }
  return count;
}

}  // namespace sotto::sites

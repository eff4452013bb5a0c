#include <sotto/sites/epochs/held_parts.h>

#include <utility>

namespace sotto::sites {

std::optional<WholeMean> HeldParts::add(const PartMessage& part) {
  if (count_ != part.parts || digest_ != part.digest) {
    parts_.clear();
    count_ = part.parts;
    digest_ = part.digest;
  }
  parts_.insert_or_assign(part.part, MeanPart{part.who, part.encoding});
  if (parts_.size() < count_) {
    return std::nullopt;
  }
  WholeMean whole{.mean = {.step = part.step, .parts = {}}, .digest = digest_};
  whole.mean.parts.reserve(count_);
  for (auto& [place, one] : std::exchange(parts_, {})) {
    whole.mean.parts.push_back(std::move(one));
  }
  return whole;
}

}  // namespace sotto::sites

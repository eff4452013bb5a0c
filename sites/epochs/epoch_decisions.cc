#include <sotto/sites/epochs/epoch_decisions.h>

#include <algorithm>
#include <iterator>

namespace sotto::sites {

void EpochDecisions::add(Epoch epoch, const EpochValue& value) {
  all_.try_emplace(epoch, value);
  while (all_.size() > kKept + 1) {
    all_.erase(std::next(all_.begin()));
  }
}

const EpochValue* EpochDecisions::find(Epoch epoch) const {
  const auto known = all_.find(epoch);
  return known == all_.end() ? nullptr : &known->second;
}

std::vector<std::pair<Epoch, EpochValue>> EpochDecisions::with_unequal() const {
  std::vector<std::pair<Epoch, EpochValue>> ends;
  std::ranges::copy_if(all_, std::back_inserter(ends),
                       [](const auto& item) { return !item.second.unequal.empty(); });
  return ends;
}

const std::pair<const Epoch, EpochValue>* EpochDecisions::answer(Epoch epoch) const {
  if (const auto known = all_.find(epoch); known != all_.end()) {
    return &*known;
  }
  return newest() != nullptr && newest()->first > epoch ? newest() : nullptr;
}

}  // namespace sotto::sites

#include <sotto/sites/process/owed_models.h>

#include <algorithm>

namespace sotto {

std::vector<Rank> OwedModels::overdue(std::span<const OwedModel> owing, Clock::time_point now) {
  std::erase_if(debts_, [&](const auto& debt) {
    return std::ranges::find(owing, debt.first, &OwedModel::peer) == owing.end();
  });
  std::vector<Rank> late;
  for (const OwedModel& owed : owing) {
    const auto [at, fresh] = debts_.try_emplace(owed.peer, Debt{owed.bytes, now, now});
    Debt& debt = at->second;
    if (owed.bytes != debt.bytes) {
      debt.bytes = owed.bytes;
      debt.advanced = now;
    }
    if (now - debt.advanced > quiet_ || now - debt.since > longest_) {
      late.push_back(owed.peer);
      debts_.erase(at);
    }
  }
  return late;
}

}  // namespace sotto

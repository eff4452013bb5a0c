#include <sotto/sites/epochs/epoch_departure.h>

#include <sotto/sites/epochs/epoch_message.h>

namespace sotto::sites {

void EpochDeparture::begin(const EpochValue& end) {
  end_ = end;
  awaited_ = end.members.empty() ? place_.members : end.members;
}

bool EpochDeparture::linger() {
  bool all = true;
  bool another_knows = false;
  bool one_may_return = false;
  for (const EpochNode& member : awaited_) {
    const EpochNode now = post_.latest(member);
    if (member == place_.self) {
      continue;
    }
    if (entered_.contains(now)) {
      another_knows = true;
      continue;
    }
    all = all && post_.suspects(now);
    one_may_return = one_may_return || post_.may_return(now);
    post_.send(member, DecideMessage{*end_});
  }
  // A node that knows an end alone takes it away, and a suspicion may be wrong.
  return all && (another_knows || !one_may_return || !rules_.leaver_waits_for_suspects);
}

}  // namespace sotto::sites

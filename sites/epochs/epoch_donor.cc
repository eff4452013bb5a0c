#include <sotto/sites/epochs/epoch_donor.h>

namespace sotto::sites {

void EpochDonor::hear(const EpochNode& from, const JoinMessage& join, Round step, EpochTime now) {
  const auto known = newcomers_.find(from);
  const bool moved = known == newcomers_.end() || known->second.ready != join.ready;
  newcomers_.insert_or_assign(from,
                              Newcomer{.heard = now,
                                       .wanted = join.wanted,
                                       .ready = join.ready,
                                       .behind = step - std::min(step, join.ready.value_or(0)),
                                       .moved = moved ? now : known->second.moved});
  if (join.wanted) {
    copy_.hold(*join.wanted, now);
  }
}

bool EpochDonor::takes_in(EpochTime now) const {
  const std::size_t members = place_.members.size();
  const EpochTime lasted = now - place_.since;
  const bool time =
      lasted >= (members < kFewest ? kBetweenFew : kBetweenPlanned) || members < setup_.least;
  return time && place_.members.size() < setup_.most;
}

void EpochDonor::decide(Round step, EpochTime now) {
  waited_ += waits_ ? now - looked_at_ : EpochTime(0);
  looked_at_ = now;
  const auto lags = [&](const auto& item) {
    const Newcomer& newcomer = item.second;
    return newcomer.ready && *newcomer.ready + near() < step &&
           now - newcomer.moved < 2 * setup_.delta && !post_.suspects(item.first);
  };
  const bool may = takes_in(now) && 4 * waited_ <= 3 * (now - place_.since);
  waits_ = may && std::ranges::any_of(newcomers_, lags);
}

void EpochDonor::answer(const EpochNode& from, const FetchMessage& fetch, EpochTime now) {
  if (const auto piece = copy_.piece(fetch, now)) {
    post_.send(from, *piece);
  }
}

std::optional<Round> EpochDonor::offered(Round step, Round oldest, EpochTime now) const {
  const std::optional<Round> copy = copy_.offered(now);
  const bool can_replay = copy && (*copy == step || (oldest > 0 && oldest <= *copy + 1));
  return can_replay ? copy : std::nullopt;
}

void EpochDonor::forget(EpochTime now) {
  std::erase_if(newcomers_, [&](const auto& item) {
    return now - item.second.heard > kSilent || post_.suspects(item.first);
  });
  copy_.expire(now);
}

void EpochDonor::copy_if_wanted(const EpochModel& model, EpochTime now) {
  const Round step = model.step();
  const auto wants = [&](const auto& item) { return item.second.wanted == step; };
  if (copy_.step() != step && !copy_.busy(now) && std::ranges::any_of(newcomers_, wants)) {
    copy_.begin(setup_.rule_saves_in_parts ? model.live() : model.still(), setup_.piece_bytes, now);
    if (!setup_.rule_saves_in_parts) {
      copy_.finish();
    }
  }
}

void EpochDonor::pass_on(const WholeMean& whole) {
  if (place_.members.empty() || whole.mean.step % place_.members.size() != place_.index) {
    return;  // one member sends each mean; what is lost, or comes too early, is asked for
  }
  for (const auto& [node, newcomer] : newcomers_) {
    if (newcomer.ready && newcomer.behind <= kClose) {
      post_.send_mean(node, whole, kAllParts);
    }
  }
}

void EpochDonor::look(Round step, EpochTime now) {
  if (waits_) {  // what the run would do is as it was
    paced_at_ = now;
    paced_step_ = step;
  } else if (now - paced_at_ >= setup_.delta) {
    pace_ = step - paced_step_;
    paced_at_ = now;
    paced_step_ = step;
  }
  decide(step, now);
}

bool EpochDonor::has_near_newcomer() const {
  return std::ranges::any_of(newcomers_, [&](const auto& item) {
    return item.second.ready && item.second.behind <= near() && !post_.suspects(item.first);
  });
}

std::map<EpochNode, Round> EpochDonor::ready() const {
  std::map<EpochNode, Round> steps;
  for (const auto& [node, newcomer] : newcomers_) {
    if (newcomer.ready) {
      steps.emplace(node, *newcomer.ready);
    }
  }
  return steps;
}

Round EpochDonor::first_needed(Round step, EpochTime now) const {
  Round first = copy_.offered(now).value_or(step) + 1;
  for (const auto& [node, newcomer] : newcomers_) {
    first = std::min(first, newcomer.ready.value_or(newcomer.wanted.value_or(step)) + 1);
  }
  return first;
}

void EpochDonor::enter(Round step, EpochTime now) {
  for (const EpochNode& member : place_.members) {
    newcomers_.erase(member);
  }
  paced_at_ = now;
  paced_step_ = step;
  waits_ = false;
  waited_ = EpochTime(0);
  looked_at_ = now;
}

void EpochDonor::clear() {
  waits_ = false;
  newcomers_.clear();
  copy_.drop();
}

}  // namespace sotto::sites

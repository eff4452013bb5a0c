// EpochMember's votes: when an epoch ends, how, and what follows.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/xxh3.h>
#include <sotto/sites/epochs/epoch_member.h>

namespace sotto::sites {

std::vector<EpochNode> EpochMember::voters() const {
  if (epoch_ > 0) {
    return members_;
  }
  std::vector<EpochNode> all;
  for (const std::string& founder : setup_.founders) {
    all.push_back({founder, 0, 0});
  }
  return all;
}

EpochNode EpochMember::voter_of(const EpochNode& node) const {
  return epoch_ > 0 ? node : EpochNode{node.name, 0, 0};
}

EpochNode EpochMember::voter_id() const { return voter_of(self_); }

bool EpochMember::is_in(const EpochValue& value) const {
  return std::ranges::find(value.members, self_) != value.members.end();
}

// -- voting ---------------------------------------------------------------------------------------

void EpochMember::on(const EpochNode& from, const PrepareMessage& prepare, EpochTime /*now*/) {
  if (!vote_.prepare(prepare.ballot)) {
    send(from, OutvotedMessage{vote_.promise()});
    return;
  }
  note_founding_vote();
  const EpochPromise promise{.by = self_,
                             .step = step_,
                             .mean = mean_ ? std::optional(mean_digest_) : std::nullopt,
                             .leaving = leaving_,
                             .accepted = vote_.accepted()};
  if (from == self_) {
    vote_.add(voter_id(), promise);
  } else {
    send(from, PromiseMessage{prepare.ballot, promise});
  }
}

void EpochMember::on(const EpochNode& from, const PromiseMessage& promise, EpochTime now) {
  if (promise.ballot == vote_.proposal() && !vote_.chosen()) {
    vote_.add(voter_of(from), promise.promise);
    try_choose(now);
  }
}

void EpochMember::on(const EpochNode& /*from*/, const OutvotedMessage& outvoted,
                     EpochTime /*now*/) {
  vote_.outvoted(outvoted.ballot);
}

void EpochMember::on(const EpochNode& from, const AcceptMessage& accept, EpochTime now) {
  if (!vote_.accept(accept.ballot, accept.value)) {
    send(from, OutvotedMessage{vote_.promise()});
    return;
  }
  note_founding_vote();
  if (from == self_) {
    on(self_, AcceptedMessage{accept.ballot}, now);
  } else {
    send(from, AcceptedMessage{accept.ballot});
  }
}

void EpochMember::on(const EpochNode& from, const AcceptedMessage& accepted, EpochTime now) {
  if (accepted.ballot != vote_.proposal() || !vote_.chosen()) {
    return;
  }
  vote_.add_accepted(voter_of(from));
  if (!rules_->quorum(vote_.accepting(), voters())) {
    return;
  }
  const EpochValue value = *vote_.chosen();
  std::set<EpochNode> all(value.members.begin(), value.members.end());
  for (const EpochNode& voter : voters()) {
    all.insert(voter);
  }
  for (const EpochNode& node : all) {
    send(node, DecideMessage{value});
  }
  learn(epoch_, value, now);
}

// -- proposing ------------------------------------------------------------------------------------

bool EpochMember::change_due(EpochTime now) const {
  if (standing_ == EpochStanding::founding) {
    return true;
  }
  if ((leaving_ && now - entered_at_ >= setup_.delta) || frozen() ||
      std::ranges::any_of(members_, [&](const EpochNode& node) { return suspected(node); })) {
    return true;
  }
  const bool planned = now - entered_at_ >= kBetweenPlanned || members_.size() < setup_.least;
  const auto comes = [&](const auto& item) {
    return item.second.ready && item.second.behind <= near() && !suspected(item.first);
  };
  return planned && members_.size() < setup_.most && !carrying() && !mean_ &&
         std::ranges::any_of(newcomers_, comes);
}

void EpochMember::watch_for_change(EpochTime now) {
  if (!change_due(now)) {
    due_.reset();
    return;
  }
  due_ = due_.value_or(now);
  if (asked_) {
    try_choose(now);
    if (!asked_) {
      return;
    }
    if (now - *asked_ < patience_) {
      if (now - said_ >= kAgain) {
        say_proposal();
      }
      return;
    }
  }
  const std::vector<EpochNode> all = voters();
  std::int64_t before = 0;
  for (const EpochNode& voter : all) {
    if (voter == voter_id()) {
      break;
    }
    before += epoch_ == 0 || !suspected(voter) ? 1 : 0;
  }
  // A node waits for those before it in the order, and longer where others propose already.
  const EpochTime turn = setup_.delta * (before + (frozen() ? 3 + 2 * before : 0));
  if (asked_ || now - *due_ >= turn) {
    patience_ = setup_.delta * (6 + 3 * before);
    propose(now);
  }
}

void EpochMember::propose(EpochTime now) {
  asked_ = now;
  vote_.propose(self_);
  on(self_, PrepareMessage{*vote_.proposal()}, now);
  say_proposal();
  try_choose(now);
}

void EpochMember::say_proposal() {
  for (const EpochNode& voter : voters()) {
    if (!vote_.chosen() && !vote_.promises().contains(voter)) {
      send(voter, PrepareMessage{*vote_.proposal()});
    } else if (vote_.chosen() && !vote_.accepting().contains(voter)) {
      send(voter, AcceptMessage{*vote_.proposal(), *vote_.chosen()});
    }
  }
}

void EpochMember::try_choose(EpochTime now) {
  if (!vote_.proposal() || vote_.chosen() || !asked_) {
    return;
  }
  const std::vector<EpochNode> all = voters();
  std::set<EpochNode> promised;
  Round top = base_;
  for (const auto& [voter, promise] : vote_.promises()) {
    promised.insert(voter);
    top = std::max(top, promise.step);
  }
  const bool everybody = std::ranges::all_of(all, [&](const EpochNode& voter) {
    return promised.contains(voter) || (epoch_ > 0 && suspected(voter));
  });
  const auto catches_up = [&](const auto& item) {
    return item.second + near() >= top && item.second < top && !suspected(item.first);
  };
  const bool soon = std::ranges::any_of(ready(), catches_up);
  if (!rules_->quorum(promised, all) || (!everybody && now - *asked_ < setup_.delta) ||
      (soon && now - *asked_ < 3 * setup_.delta)) {
    return;
  }
  EpochValue value;
  if (epoch_ == 0) {
    value = founding_value();
  } else {
    EpochChoice choice{.members = members_,
                       .base = base_,
                       .history = history_,
                       .promises = vote_.promises(),
                       .unwanted = {},
                       .ready = ready(),
                       .awaited = !newcomers_.empty(),
                       .most = setup_.most};
    for (const EpochNode& member : members_) {
      if (suspected(member)) {
        choice.unwanted.insert(member);
      }
    }
    for (const auto& [newcomer, step] : choice.ready) {
      if (suspected(newcomer)) {
        choice.unwanted.insert(newcomer);
      }
    }
    value = rules_->choose(choice);
  }
  vote_.choose(value);
  say_proposal();
  on(self_, AcceptMessage{*vote_.proposal(), value}, now);
}

EpochValue EpochMember::founding_value() const {
  EpochChoice choice{.members = {}, .promises = vote_.promises()};
  EpochValue before = rules_->choose(choice);
  if (before.history != History{}) {
    return before;  // somebody has accepted it
  }
  // No two proposals have one ballot, and no two processes one incarnation.
  ByteBuffer drawn;
  drawn.write_string(self_.name);
  drawn.write(self_.incarnation);
  drawn.write(vote_.proposal()->number);
  EpochValue value{
      .members = {}, .base = 0, .carry = std::nullopt, .history = xxh3_128(drawn.bytes())};
  for (const EpochNode& founder : voters()) {
    if (const auto promise = vote_.promises().find(founder); promise != vote_.promises().end()) {
      value.members.push_back(promise->second.by);
    }
  }
  return value;
}

// -- decisions ------------------------------------------------------------------------------------

void EpochMember::on_decide(const EpochNode& from, Epoch epoch, const EpochValue& value,
                            EpochTime now) {
  learn(epoch, value, now);
  // A leaver waits until all have entered and hold what the epoch begins with, not until they have
  // heard: one that knows the end of an epoch which it has not entered may never get there.
  const bool over = standing_ == EpochStanding::leaving && value.members.empty();
  if (over || (standing_ == EpochStanding::member && epoch_ > epoch && (!carry_ || mean_)) ||
      standing_ == EpochStanding::joining) {
    send(from, epoch + 1, EnteredMessage{});
  }
}

void EpochMember::on_ask(const EpochNode& from, Epoch epoch) {
  auto known = decisions_.find(epoch);
  if (known == decisions_.end() && !decisions_.empty() && decisions_.rbegin()->first > epoch) {
    known = std::prev(decisions_.end());  // for who has fallen so far behind that it is out
  }
  if (known != decisions_.end()) {
    // A node that asks about the founding knows no history, and the founding has none.
    send(from, known->first, DecideMessage{known->second});
    if (known->first + 1 == epoch_) {
      catch_up(from);  // what this node said since then has reached it too early
    }
  }
}

void EpochMember::on_entered(const EpochNode& from, Epoch epoch) {
  if (standing_ == EpochStanding::leaving && epoch > epoch_) {
    entered_.insert(from);
    linger();
  }
}

void EpochMember::learn(Epoch epoch, const EpochValue& value, EpochTime now) {
  if (epoch > 0 && history_ != History{} && value.history != history_) {
    return;
  }
  decisions_.try_emplace(epoch, value);
  while (decisions_.size() > kDecisionsKept + 1) {
    decisions_.erase(std::next(decisions_.begin()));
  }
  follow(now);
}

void EpochMember::follow(EpochTime now) {
  while (standing_ == EpochStanding::member || standing_ == EpochStanding::founding) {
    const auto ended = decisions_.find(epoch_);
    if (ended == decisions_.end()) {
      break;
    }
    end_epoch(ended->second, now);
  }
  if (decisions_.empty()) {
    return;
  }
  const auto& [newest, value] = *decisions_.rbegin();
  if (standing_ == EpochStanding::member && newest > epoch_ && rules_->begins_anew() &&
      (!is_in(value) || newest >= epoch_ + kDecisionsKept)) {
    // The value is the end of that epoch: told as the end of an earlier one it would be another.
    epoch_ = newest;
    put_out(value);
  } else if (standing_ == EpochStanding::joining && newest >= epoch_ && is_in(value)) {
    if (rules_->enters(step_, value.base) && fetch_.done()) {
      enter(newest + 1, value, now);
    } else {
      ++self_.stay;  // that epoch is over, and its admission has lapsed
    }
  }
}

void EpochMember::end_epoch(const EpochValue& value, EpochTime now) {
  if (is_in(value)) {
    enter(epoch_ + 1, value, now);
    return;
  }
  if (standing_ == EpochStanding::founding) {
    history_ = value.history;
    epoch_ = 1;
    begin_anew();
    return;
  }
  put_out(value);
}

void EpochMember::put_out(const EpochValue& value) {
  if (!leaving_) {
    begin_anew();
    return;
  }
  lingers_ = value;
  waits_for_ = value.members.empty() ? members_ : value.members;
  standing_ = rules_->leaver_waits() ? EpochStanding::leaving : EpochStanding::left;
  linger();
}

void EpochMember::linger() {
  if (!lingers_ || standing_ != EpochStanding::leaving) {
    return;
  }
  bool all = true;
  bool another_knows = false;
  bool one_may_return = false;
  for (const EpochNode& member : waits_for_) {
    const auto stay = stays_.find({member.name, member.incarnation});
    const EpochNode now{member.name, member.incarnation,
                        stay == stays_.end() ? member.stay : stay->second};
    if (member == self_) {
      continue;
    }
    if (entered_.contains(now)) {
      another_knows = true;
      continue;
    }
    all = all && suspected(now);
    one_may_return = one_may_return || peers_.contains({now.name, now.incarnation, true});
    send(member, epoch_, DecideMessage{*lingers_});
  }
  // A node that knows an end alone takes it away, and a suspicion may be wrong.
  if (all && (another_knows || !one_may_return || !rules_->leaver_waits_for_suspects())) {
    standing_ = EpochStanding::left;
  }
}

void EpochMember::begin_anew() {
  standing_ = EpochStanding::joining;
  ++self_.stay;
  if (gradient_) {
    outcome_ = {model_.step(), true};
  }
  gradient_.reset();
  members_.clear();
  index_.reset();
  vote_ = {};
  works_.clear();
  mean_.reset();
  carry_.reset();
  held_.clear();
  parked_.clear();
  log_.clear();
  copy_.drop();
  newcomers_.clear();
  reducer_.clear();
  fetch_.restart();
  due_.reset();
  asked_.reset();
}

void EpochMember::enter(Epoch epoch, const EpochValue& value, EpochTime now) {
  if (mean_ && step_ + 1 == value.base && rules_->applies_kept()) {
    // Somebody has applied it, for which this node had to have it.
    const StepMean mean = std::move(*mean_);
    mean_.reset();
    commit(mean, mean_digest_);
    if (standing_ == EpochStanding::failed) {
      return;  // its model did not move: it is none to vote with, or to copy
    }
  }
  const bool ahead = value.carry && step_ == value.base + 1 && log_.digest(step_) == value.carry;
  if (step_ != value.base && !ahead) {
    fail({Fault::unexpected,
          fmt::format("epoch {} begins after step {}, and this node has applied {}", epoch,
                      value.base, step_)});
    return;
  }
  standing_ = EpochStanding::member;
  epoch_ = epoch;
  members_ = value.members;
  index_ = static_cast<std::size_t>(std::ranges::find(members_, self_) - members_.begin());
  base_ = value.base;
  history_ = value.history;
  vote_ = {};
  works_.clear();
  held_.clear();
  carry_ = ahead ? std::nullopt : value.carry;
  asked_carry_ = false;
  caught_up_.clear();
  const bool holds = mean_ && carry_ && mean_digest_ == *carry_;
  if (!holds) {
    mean_.reset();
  }
  for (const EpochNode& member : members_) {
    newcomers_.erase(member);
  }
  entered_at_ = now;
  paced_at_ = now;
  paced_step_ = step_;
  due_.reset();
  asked_.reset();
  if (mean_) {
    hold(std::move(*mean_), mean_digest_);
  }
}

}  // namespace sotto::sites

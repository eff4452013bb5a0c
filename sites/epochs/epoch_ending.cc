#include <sotto/sites/epochs/epoch_ending.h>

#include <algorithm>
#include <utility>

#include <sotto/base/bytes.h>
#include <sotto/base/xxh3.h>

namespace sotto::sites {

// -- voting ---------------------------------------------------------------------------------------

std::optional<EpochValue> EpochEnding::hear(const EpochNode& from, const PrepareMessage& prepare,
                                            EpochTime /*now*/) {
  if (!vote_.prepare(prepare.ballot)) {
    post_.send(from, OutvotedMessage{vote_.promise()});
    return std::nullopt;
  }
  note_founding_vote();
  const EpochPromise promise{.by = place_.self,
                             .step = steps_.step(),
                             .mean = steps_.held(),
                             .leaving = place_.wants_to_leave,
                             .unequal = place_.epoch > 0 ? steps_.unequal() : 0,
                             .accepted = vote_.accepted()};
  if (from == place_.self) {
    vote_.add(place_.voter_of(place_.self), promise);
  } else {
    post_.send(from, PromiseMessage{prepare.ballot, promise});
  }
  return std::nullopt;
}

std::optional<EpochValue> EpochEnding::hear(const EpochNode& from, const PromiseMessage& promise,
                                            EpochTime now) {
  if (promise.ballot != vote_.proposal() || vote_.chosen()) {
    return std::nullopt;
  }
  vote_.add(place_.voter_of(from), promise.promise);
  return try_choose(now);
}

std::optional<EpochValue> EpochEnding::hear(const EpochNode& /*from*/,
                                            const OutvotedMessage& outvoted, EpochTime /*now*/) {
  vote_.outvoted(outvoted.ballot);
  return std::nullopt;
}

std::optional<EpochValue> EpochEnding::hear(const EpochNode& from, const AcceptMessage& accept,
                                            EpochTime now) {
  if (!vote_.accept(accept.ballot, accept.value)) {
    post_.send(from, OutvotedMessage{vote_.promise()});
    return std::nullopt;
  }
  note_founding_vote();
  if (from == place_.self) {
    return hear(from, AcceptedMessage{accept.ballot}, now);
  }
  post_.send(from, AcceptedMessage{accept.ballot});
  return std::nullopt;
}

std::optional<EpochValue> EpochEnding::hear(const EpochNode& from, const AcceptedMessage& accepted,
                                            EpochTime /*now*/) {
  if (accepted.ballot != vote_.proposal() || !vote_.chosen()) {
    return std::nullopt;
  }
  vote_.add_accepted(place_.voter_of(from));
  if (!setup_.rules.quorum(vote_.accepting(), place_.voters())) {
    return std::nullopt;
  }
  const EpochValue& value = *vote_.chosen();
  std::set<EpochNode> all(value.members.begin(), value.members.end());
  all.insert(place_.voters().begin(), place_.voters().end());
  for (const EpochNode& node : all) {
    post_.send(node, DecideMessage{value});
  }
  return value;
}

void EpochEnding::clear() {
  vote_ = {};
  due_.reset();
  unequal_since_.reset();
  asked_.reset();
}

// -- proposing ------------------------------------------------------------------------------------

bool EpochEnding::due(EpochTime now) const {
  if (place_.standing == EpochStanding::founding) {
    return true;
  }
  const auto suspected = [&](const EpochNode& node) { return post_.suspects(node); };
  if ((place_.wants_to_leave && now - place_.since >= setup_.delta) || frozen() ||
      std::ranges::any_of(place_.members, suspected)) {
    return true;
  }
  return donor_.takes_in(now) && !steps_.carries() && !steps_.held() && donor_.has_near_newcomer();
}

bool EpochEnding::puts_out_unequal(EpochTime now) {
  const std::uint64_t unequal = place_.epoch > 0 ? steps_.unequal() : 0;
  if (unequal == 0 || (unequal >> place_.index & 1U) != 0) {
    unequal_since_.reset();  // or it is this node, and the others see to it
    return false;
  }
  unequal_since_ = unequal_since_.value_or(now);
  return now - *unequal_since_ >= std::min(setup_.delta, kEpochAgain);
}

std::int64_t EpochEnding::voters_before() const {
  const EpochNode own = place_.voter_of(place_.self);
  std::int64_t before = 0;
  for (const EpochNode& voter : place_.voters()) {
    if (voter == own) {
      break;
    }
    before += place_.epoch == 0 || !post_.suspects(voter) ? 1 : 0;
  }
  return before;
}

std::optional<EpochValue> EpochEnding::watch(bool again, EpochTime now) {
  // In a tie all end, and none is to go on as the others are gone.
  const bool unequal = puts_out_unequal(now);
  if ((!unequal && !due(now)) || (place_.epoch > 0 && !frozen() && !steps_.tie().ok())) {
    due_.reset();
    return std::nullopt;
  }
  due_ = due_.value_or(now);
  if (asked_) {
    if (auto decided = try_choose(now)) {
      return decided;
    }
    if (now - *asked_ < patience_) {
      if (again) {
        say_proposal();
      }
      return std::nullopt;
    }
  }
  // A node waits for those before it in the order, and longer where others propose already.
  const std::int64_t before = voters_before();
  const EpochTime turn = setup_.delta * (before + (frozen() ? 3 + 2 * before : 0));
  if (!asked_ && now - *due_ < turn) {
    return std::nullopt;
  }
  patience_ = setup_.delta * (6 + 3 * before);
  return propose(now);
}

std::optional<EpochValue> EpochEnding::propose(EpochTime now) {
  asked_ = now;
  vote_.propose(place_.self);
  (void)hear(place_.self, PrepareMessage{*vote_.proposal()}, now);
  say_proposal();
  return try_choose(now);
}

void EpochEnding::say_proposal() {
  for (const EpochNode& voter : place_.voters()) {
    if (!vote_.chosen() && !vote_.promises().contains(voter)) {
      post_.send(voter, PrepareMessage{*vote_.proposal()});
    } else if (vote_.chosen() && !vote_.accepting().contains(voter)) {
      post_.send(voter, AcceptMessage{*vote_.proposal(), *vote_.chosen()});
    }
  }
}

bool EpochEnding::waits_for_promises(EpochTime now) const {
  std::set<EpochNode> promised;
  Round top = place_.base;
  for (const auto& [voter, promise] : vote_.promises()) {
    promised.insert(voter);
    top = std::max(top, promise.step);
  }
  const bool everybody = std::ranges::all_of(place_.voters(), [&](const EpochNode& voter) {
    return promised.contains(voter) || (place_.epoch > 0 && post_.suspects(voter));
  });
  const auto catches_up = [&](const auto& item) {
    return item.second + donor_.near() >= top && item.second < top && !post_.suspects(item.first);
  };
  const bool soon = std::ranges::any_of(donor_.ready(), catches_up) || ends_without_one();
  return !setup_.rules.quorum(promised, place_.voters()) ||
         (!everybody && now - *asked_ < setup_.delta) || (soon && now - *asked_ < 3 * setup_.delta);
}

bool EpochEnding::ends_without_one() const {
  const auto leaves = [](const auto& item) { return item.second.leaving; };
  const auto may_go_on = [&](const EpochNode& voter) {
    return !vote_.promises().contains(voter) && post_.may_return(voter);
  };
  return setup_.rules.leaver_waits_for_suspects && place_.epoch > 0 &&
         std::ranges::all_of(vote_.promises(), leaves) &&
         std::ranges::any_of(place_.voters(), may_go_on);
}

std::optional<EpochValue> EpochEnding::try_choose(EpochTime now) {
  if (!vote_.proposal() || vote_.chosen() || !asked_ || waits_for_promises(now)) {
    return std::nullopt;
  }
  const EpochValue value = place_.epoch == 0 ? founding_value() : setup_.rules.choose(choice());
  vote_.choose(value);
  say_proposal();
  return hear(place_.self, AcceptMessage{*vote_.proposal(), value}, now);
}

EpochChoice EpochEnding::choice() const {
  EpochChoice choice{.members = place_.members,
                     .base = place_.base,
                     .own = steps_.step(),
                     .history = place_.history,
                     .promises = vote_.promises(),
                     .unwanted = {},
                     .ready = donor_.ready(),
                     .awaited = donor_.hears_newcomers(),
                     .most = setup_.most};
  for (const EpochNode& member : place_.members) {
    if (post_.suspects(member)) {
      choice.unwanted.insert(member);
    }
  }
  for (const auto& [newcomer, step] : choice.ready) {
    if (post_.suspects(newcomer)) {
      choice.unwanted.insert(newcomer);
    }
  }
  return choice;
}

// -- the founding ---------------------------------------------------------------------------------

EpochValue EpochEnding::founding_value() const {
  const EpochChoice choice{.members = {}, .promises = vote_.promises()};
  EpochValue before = setup_.rules.choose(choice);
  if (before.history != History{}) {
    return before;  // somebody has accepted it
  }
  // Where it is drawn, no two proposals of a member have one ballot, and no two members of a
  // process one stay.
  ByteBuffer drawn;
  drawn.write_string(place_.self.name);
  drawn.write(place_.self.incarnation);
  drawn.write(place_.self.stay);
  drawn.write(vote_.proposal()->number);
  const History own = setup_.history != History{} ? setup_.history : xxh3_128(drawn.bytes());
  EpochValue value{.members = {}, .base = 0, .carry = std::nullopt, .history = own};
  for (const auto& [voter, promise] : vote_.promises()) {
    value.base = std::max(value.base, promise.step);
  }
  for (const EpochNode& founder : place_.voters()) {
    const auto promise = vote_.promises().find(founder);
    // A founder with an older model takes the run's over, as a newcomer.
    if (promise != vote_.promises().end() &&
        (promise->second.step == value.base || !setup_.rules.founds_at_base)) {
      value.members.push_back(promise->second.by);
    }
  }
  return value;
}

void EpochEnding::note_founding_vote() {
  if (place_.epoch == 0) {
    ByteBuffer out;
    vote_.save(out);
    votes_ = std::move(out).take();
    votes_changed_ = true;
  }
}

std::vector<std::byte> EpochEnding::founding_votes() {
  votes_changed_ = false;
  return votes_;
}

Status EpochEnding::load_founding_votes(std::span<const std::byte> votes) {
  ByteReader in(votes);
  votes_.assign(votes.begin(), votes.end());
  return vote_.load(in);
}

}  // namespace sotto::sites

#include <sotto/sites/epochs/epoch_member.h>

#include <algorithm>
#include <memory>
#include <variant>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/kernels/ops.h>

namespace sotto::sites {
namespace {

EpochMembership before_all(const EpochSetup& setup, EpochTime now) {
  EpochMembership place{.self = {setup.name, setup.incarnation, setup.stay}, .since = now};
  for (const std::string& founder : setup.founders) {
    place.founders.push_back({founder, 0, 0});
    if (founder == setup.name) {
      place.standing = EpochStanding::founding;
    }
  }
  return place;
}

}  // namespace

EpochMember::EpochMember(EpochSetup setup, EpochTime now)
    : setup_(approved(std::move(setup))),
      place_(before_all(setup_, now)),
      model_(setup_.parameters, setup_.layout, std::move(setup_.step_rule)),
      steps_(setup_, std::move(setup_.compressor), place_, post_, model_),
      now_(now),
      said_(now) {}

Status EpochMember::begin_from(Round step, std::span<const std::byte> snapshot) {
  Status status = model_.restore(step, snapshot);
  if (status.ok()) {
    steps_.restart_at(step);
  }
  return status;
}

void EpochMember::begin_copy(std::vector<std::byte> room) {
  file_copy_.begin(model_.live(), std::move(room));
  if (!setup_.rule_saves_in_parts) {
    file_copy_.finish();
  }
}

// -- what others say ------------------------------------------------------------------------------

Status EpochMember::receive(const std::string& name, Incarnation incarnation,
                            const SharedBytes& message, EpochTime now) {
  const auto parsed = parse_epoch(message);
  if (!parsed) {
    return parsed.status();
  }
  now_ = now;
  const EpochHeader& header = parsed->header;
  const bool stranger =
      header.history != History{} && history() != History{} && header.history != history();
  if (stranger || standing() == EpochStanding::failed || standing() == EpochStanding::left) {
    return {};
  }
  const EpochNode from{name, incarnation, header.stay};
  if (post_.hear(from)) {
    std::visit([&](const auto& body) { on(from, header, body); }, parsed->body);
    advance();
  }
  return {};
}

void EpochMember::on(const EpochNode& from, const EpochHeader& header, const ChunkMessage& chunk) {
  if (current(from, header.epoch) && acting()) {
    steps_.hear(from, chunk, now_);
  }
}

void EpochMember::on(const EpochNode& from, const EpochHeader& header, const HaveMessage& have) {
  if (current(from, header.epoch) && acting()) {
    steps_.hear(from, have, now_);
  }
}

template <typename Body>
void EpochMember::on_vote(const EpochNode& from, const EpochHeader& header, const Body& body) {
  if (!current(from, header.epoch)) {
    return;
  }
  if (const auto decided = ending_.hear(from, body, now_)) {
    learn(epoch(), *decided);
  }
}

void EpochMember::on(const EpochNode& from, const EpochHeader& header,
                     const PrepareMessage& prepare) {
  on_vote(from, header, prepare);
}

void EpochMember::on(const EpochNode& from, const EpochHeader& header,
                     const PromiseMessage& promise) {
  on_vote(from, header, promise);
}

void EpochMember::on(const EpochNode& from, const EpochHeader& header,
                     const OutvotedMessage& outvoted) {
  on_vote(from, header, outvoted);
}

void EpochMember::on(const EpochNode& from, const EpochHeader& header,
                     const AcceptMessage& accept) {
  on_vote(from, header, accept);
}

void EpochMember::on(const EpochNode& from, const EpochHeader& header,
                     const AcceptedMessage& accepted) {
  on_vote(from, header, accepted);
}

void EpochMember::on(const EpochNode& from, const EpochHeader& header, const PartMessage& part) {
  if (part.standing == PartMessage::Standing::held) {
    const bool replays =
        standing() == EpochStanding::joining && joiner_.replays() && joiner_.hears(from);
    const auto whole = steps_.hear_held(from, part, acting(), replays);
    if (!whole.ok()) {
      contradict(from, whole.status());
      return;
    }
    (void)commit(whole);
  } else if (current(from, header.epoch) && acting()) {
    steps_.hear(from, part);
  }
}

void EpochMember::on(const EpochNode& from, const EpochHeader& header, const WantMessage& want) {
  const bool gives_held =
      departure_.end() ? departure_.end()->carry == steps_.held() : acting() && steps_.carries();
  steps_.answer(from, want, gives_held, acting() && header.epoch == epoch());
}

void EpochMember::on(const EpochNode& from, const EpochHeader& header,
                     const DecideMessage& decide) {
  learn(header.epoch, decide.value);
  // A leaver waits until all have entered and hold what the epoch begins with, not until they have
  // heard: one that knows the end of an epoch which it has not entered may never get there.
  const bool over = standing() == EpochStanding::leaving && decide.value.members.empty();
  const bool entered =
      standing() == EpochStanding::member && epoch() > header.epoch && !steps_.lacks_carried();
  if (over || entered || standing() == EpochStanding::joining) {
    post_.send(from, header.epoch + 1, EnteredMessage{});
  }
}

void EpochMember::on(const EpochNode& from, const EpochHeader& header, const AskMessage& /*ask*/) {
  tell_end(from, header.epoch);
}

void EpochMember::on(const EpochNode& from, const EpochHeader& header,
                     const EnteredMessage& /*entered*/) {
  if (standing() == EpochStanding::leaving && header.epoch > epoch()) {
    departure_.note_entered(from);
    linger();
  }
}

void EpochMember::on(const EpochNode& from, const EpochHeader& /*header*/,
                     const JoinMessage& join) {
  if (standing() != EpochStanding::member) {
    return;
  }
  if (std::ranges::find(members(), from) != members().end()) {
    tell_end(from, epoch() - 1);  // it has not heard that it was taken in
    return;
  }
  // Only of steps that the run has come to, as the caller has to answer for it.
  const bool known = join.settings.of <= step();
  const StepSettings own = known ? step_settings_of(setup_, join.settings.of) : join.settings;
  if (own != join.settings) {
    post_.send(from, DonorMessage{step(), 0, std::nullopt, own});  // it is not let in
    return;
  }
  // It may have copied from a member that was put out.
  for (const auto& [ended, value] : decisions_.with_unequal()) {
    if (std::ranges::find(value.members, from) == value.members.end()) {
      post_.send(from, ended, DecideMessage{value});
    }
  }
  donor_.hear(from, join, step(), now_);
  look_after_newcomers();
  const Round oldest = steps_.log().oldest();
  post_.send(from, DonorMessage{step(), oldest, donor_.offered(step(), oldest, now_), {}});
}

void EpochMember::on(const EpochNode& from, const EpochHeader& header, const DonorMessage& donor) {
  if (header.history != History{} && standing() <= EpochStanding::joining) {
    if (joiner_.hear(from, donor, now_)) {
      place_.history = header.history;
    }
  }
}

void EpochMember::on(const EpochNode& from, const EpochHeader& /*header*/,
                     const FetchMessage& fetch) {
  donor_.answer(from, fetch, now_);
}

void EpochMember::on(const EpochNode& from, const EpochHeader& /*header*/,
                     const PieceMessage& piece) {
  if (standing() == EpochStanding::joining && !parameters_taken()) {
    if (const auto state = joiner_.take(from, piece, now_)) {
      restore(*state);
    }
  }
}

bool EpochMember::current(const EpochNode& from, Epoch epoch) {
  const bool votes = standing() == EpochStanding::founding && place_.epoch == 0;
  if (epoch == place_.epoch && (votes || standing() == EpochStanding::member)) {
    return std::ranges::find(place_.voters(), place_.voter_of(from)) != place_.voters().end();
  }
  if (epoch > place_.epoch && standing() == EpochStanding::member) {
    post_.send(from, AskMessage{});
  } else if (epoch <= place_.epoch || decisions_.find(epoch) != nullptr) {
    tell_end(from, epoch);
  }
  return false;
}

void EpochMember::tell_end(const EpochNode& to, Epoch epoch) {
  const auto* const known = decisions_.answer(epoch);
  if (known == nullptr) {
    return;
  }
  // A node that asks about the founding knows no history, and the founding has none.
  post_.send(to, known->first, DecideMessage{known->second});
  if (known->first + 1 == place_.epoch && acting()) {
    steps_.catch_up(to);  // what this node said since then has reached it too early
  }
}

// -- what the caller and the clock do -------------------------------------------------------------

Status EpochMember::not_finite() const {
  return {
      Fault::non_finite,
      fmt::format("step {}: the gradient has elements that are not finite, or above 10^18; lower "
                  "the learning rate, or look at the data",
                  step() + 1)};
}

Status EpochMember::gradient_part(std::size_t first, std::span<const float> values, EpochTime now) {
  const std::size_t dimension = setup_.parameters.size();
  check(computing_, "a part of a gradient is given where one is wanted");
  check(first <= dimension && values.size() <= dimension - first, "a part lies in the gradient");
  // One that is late is of a step that is made: the next one must not have its parts.
  const bool finite =
      is_late() ? host_ops().count_non_finite(values).count == 0 : steps_.take_part(first, values);
  if (!finite) {
    return not_finite();
  }
  now_ = now;
  advance();
  return fault_;
}

Status EpochMember::offer(std::span<const float> gradient, EpochTime now) {
  check(computing_, "a gradient is offered where one is wanted");
  check(gradient.size() == setup_.parameters.size(), "a gradient has the model's dimension");
  check(!steps_.has_parts(), "a gradient is given whole or in parts");
  return steps_.take_gradient(gradient) ? take_offer(now) : not_finite();
}

Status EpochMember::offer(EpochTime now) {
  check(computing_, "a gradient is offered where one is wanted");
  check(steps_.take_parts() || is_late(), "all parts of a gradient were given");
  return take_offer(now);
}

Status EpochMember::take_offer(EpochTime now) {
  now_ = now;
  const bool late = is_late();
  computing_ = false;
  if (late) {
    steps_.drop_gradient();
    apply_parked();
    outcome_ = {model_.step(), true};
  }
  advance();
  return fault_;
}

void EpochMember::keep_parameters(bool kept) {
  kept_ = kept;
  if (!parameters_taken()) {
    apply_parked();
    advance();
  }
}

void EpochMember::leave(EpochTime now) {
  if (place_.wants_to_leave || standing() == EpochStanding::failed) {
    return;  // others still need it, or it has failed
  }
  place_.wants_to_leave = true;
  if (std::exchange(computing_, false)) {
    steps_.drop_gradient();  // what was given of it in parts
  }
  apply_parked();
  if (standing() == EpochStanding::failed) {
    return;
  }
  if (standing() != EpochStanding::member) {
    place_.standing = EpochStanding::left;
  }
  now_ = now;
  advance();
}

void EpochMember::tick(EpochTime now) {
  if (standing() == EpochStanding::failed || standing() == EpochStanding::left) {
    return;
  }
  now_ = now;
  file_copy_.copy_slice();
  if (acting()) {
    look_for_tie();
    if (standing() == EpochStanding::failed) {
      return;
    }
  }
  const bool replays = standing() == EpochStanding::joining && joiner_.replays();
  const bool again = now - said_ >= kEpochAgain;
  if (standing() == EpochStanding::member || standing() == EpochStanding::founding) {
    if (const auto decided = ending_.watch(again, now)) {
      learn(epoch(), *decided);
    }
  }
  if (standing() == EpochStanding::member) {
    if (!frozen()) {
      donor_.look(step(), now);
      donor_.copy_slice();
    }
    look_after_newcomers();
  }
  if (again) {
    said_ = now;
    joiner_.look_for_progress(step(), steps_.parts_held(), now);
  }
  if (again || replays) {
    say_again();
  }
  advance();
}

void EpochMember::say_again() {
  switch (standing()) {
    case EpochStanding::leaving:
      linger();
      break;
    case EpochStanding::member:
      post_.send_to_peers(AskMessage{});
      if (!frozen()) {
        steps_.say_again(now_);
      }
      break;
    default:
      if (standing() == EpochStanding::founding && joiner_.hears_donors()) {
        begin_anew();  // a run is there
      }
      joiner_.seek(step(), standing() == EpochStanding::joining && !parameters_taken(), now_);
      if (Status status = joiner_.refusal(now_); !status.ok()) {
        fail(status);
      }
      break;
  }
}

void EpochMember::look_for_tie() {
  const Status tie = steps_.tie();
  if (tie.ok()) {
    tie_since_.reset();
    return;
  }
  tie_since_ = tie_since_.value_or(now_);
  // By now the others have heard this node, too, or have said their own again and were answered.
  if (now_ - *tie_since_ >= 2 * kEpochAgain) {
    fail(tie);
  }
}

void EpochMember::look_after_newcomers() {
  donor_.forget(now_);
  donor_.copy_if_wanted(model_, now_);
  steps_.keep_from(donor_.first_needed(step(), now_));
}

// -- steps ----------------------------------------------------------------------------------------

void EpochMember::advance() {
  bool goes_on = acting();
  while (goes_on) {
    goes_on = commit(steps_.advance(now_, parked_.size() < kMostParked)) && acting();
  }
  if (standing() == EpochStanding::joining && !parameters_taken()) {
    joiner_.ask(step(), now_);
  }
  if (standing() == EpochStanding::member && !place_.wants_to_leave && !steps_.has_gradient() &&
      parked_.empty() && !donor_.run_waits()) {
    computing_ = true;
  }
}

bool EpochMember::commit(const Result<std::optional<WholeMean>>& whole) {
  if (!whole.ok()) {
    fail(whole.status());
    return false;
  }
  if (*whole) {
    commit(**whole);
  }
  return whole->has_value();
}

void EpochMember::commit(const WholeMean& whole) {
  note_absent(whole);
  contradicting_.clear();
  const auto outcome = steps_.commit(whole);
  donor_.pass_on(whole);
  parked_.push_back(whole.mean);
  if (!parameters_taken()) {
    apply_parked();
  }
  outcome_ = outcome ? outcome : outcome_;
}

void EpochMember::note_absent(const WholeMean& whole) {
  if (standing() != EpochStanding::member) {
    return;
  }
  for (const std::uint16_t place : steps_.absent(whole)) {
    ++left_out_.counts[members()[place].name];
    left_out_.latest = whole.mean.step;
  }
}

void EpochMember::apply_parked() {
  while (!parked_.empty() && standing() != EpochStanding::failed) {
    const StepMean mean = std::move(parked_.front());
    parked_.pop_front();
    room_.resize(setup_.parameters.size());
    check(steps_.decode(mean, room_), "a mean was decoded when it came");
    donor_.finish_copy();
    file_copy_.finish();
    if (Status status = model_.apply(room_); !status.ok()) {
      fail(status);
      return;
    }
    donor_.copy_if_wanted(model_, now_);
  }
}

void EpochMember::restore(const FetchedState& state) {
  file_copy_.finish();
  if (Status status = model_.restore(state.step, state.bytes); !status.ok()) {
    fail(status);
    return;
  }
  steps_.restart_at(state.step);
  sound_ = true;
}

void EpochMember::fail(const Status& status) {
  fault_ = status;
  place_.standing = EpochStanding::failed;
}

// -- from one epoch to the next -------------------------------------------------------------------

void EpochMember::note_unequal(const EpochValue& value) {
  if (value.unequal.empty()) {
    return;
  }
  const bool own = std::ranges::find(value.unequal, self()) != value.unequal.end();
  unequal_ = {.nodes = value.unequal,
              .step = value.base,
              .own = own,
              .comes_back = own && anew_ < kMostAnew && !place_.wants_to_leave};
}

void EpochMember::differ(const Status& how) {
  distrust_model();
  if (place_.wants_to_leave) {
    place_.standing = EpochStanding::left;
    return;
  }
  if (anew_ >= kMostAnew) {
    fail(how.with_context("after the state was taken anew from the others"));
    return;
  }
  ++anew_;
  begin_anew();
}

void EpochMember::contradict(const EpochNode& by, const Status& how) {
  const auto counts = [&](const EpochNode& node) {
    return standing() == EpochStanding::joining
               ? joiner_.hears(node)
               : std::ranges::find(members(), node) != members().end();
  };
  contradicting_.insert_or_assign({by.name, by.incarnation}, by);
  std::erase_if(contradicting_, [&](const auto& item) { return !counts(item.second); });
  if (standing() != EpochStanding::joining) {
    if (2 * contradicting_.size() > members().size() - 1) {
      differ(how);
    }
  } else if (2 * contradicting_.size() > joiner_.donors()) {
    fail(how);
  } else {
    joiner_.avoid(by);
  }
}

bool EpochMember::is_in(const EpochValue& value) const {
  return std::ranges::find(value.members, self()) != value.members.end();
}

void EpochMember::learn(Epoch epoch, const EpochValue& value) {
  if (epoch > 0 && history() != History{} && value.history != history()) {
    return;
  }
  decisions_.add(epoch, value);
  if (standing() == EpochStanding::joining) {
    joiner_.distrust(value.unequal);
  }
  follow();
}

void EpochMember::follow() {
  while (standing() == EpochStanding::member || standing() == EpochStanding::founding) {
    const EpochValue* const ended = decisions_.find(epoch());
    if (ended == nullptr) {
      break;
    }
    end_epoch(*ended);
  }
  if (decisions_.newest() == nullptr) {
    return;
  }
  const auto& [newest, value] = *decisions_.newest();
  if (standing() == EpochStanding::member && newest > epoch() && setup_.rules.begins_anew &&
      (!is_in(value) || newest >= epoch() + EpochDecisions::kKept)) {
    // The value is the end of that epoch: told as the end of an earlier one it would be another.
    place_.epoch = newest;
    put_out(value);
  } else if (standing() == EpochStanding::joining && newest >= epoch() && is_in(value)) {
    const bool at_base = step() == value.base || !setup_.rules.enters_at_base;
    if (at_base && joiner_.replays()) {
      enter(newest + 1, value);
    } else {
      ++place_.self.stay;  // that epoch is over, and its admission has lapsed
    }
  }
}

void EpochMember::end_epoch(const EpochValue& value) {
  if (is_in(value)) {
    enter(epoch() + 1, value);
    return;
  }
  if (standing() == EpochStanding::founding) {
    place_.history = value.history;
    place_.epoch = 1;
    begin_anew();
    return;
  }
  put_out(value);
}

void EpochMember::put_out(const EpochValue& value) {
  note_unequal(value);
  const bool unequal = std::ranges::find(value.unequal, self()) != value.unequal.end();
  if (unequal) {
    distrust_model();
  }
  if (!place_.wants_to_leave) {
    if (unequal) {
      differ({Fault::unexpected,
              fmt::format("step {}: the model or the mean of this node, {}, was not that of more "
                          "than half of the members, which go on without it: its processor or "
                          "memory fails, or it has another build, or other settings of the step; "
                          "test the machine, compare both with the others', and start it again",
                          value.base, self().name)});
    } else {
      begin_anew();
    }
    return;
  }
  departure_.begin(value);
  place_.standing = setup_.rules.leaver_waits ? EpochStanding::leaving : EpochStanding::left;
  linger();
}

void EpochMember::linger() {
  if (standing() == EpochStanding::leaving && departure_.linger()) {
    place_.standing = EpochStanding::left;
  }
}

void EpochMember::begin_anew() {
  place_.standing = EpochStanding::joining;
  tie_since_.reset();
  contradicting_.clear();
  ++place_.self.stay;
  place_.members.clear();
  if (steps_.begin_anew()) {
    outcome_ = {model_.step(), true};
  }
  parked_.clear();
  donor_.clear();
  joiner_.restart();
  ending_.clear();
}

void EpochMember::enter(Epoch epoch, const EpochValue& value) {
  if (const auto kept = setup_.rules.applies_kept ? steps_.take_kept(value.base) : std::nullopt) {
    // Somebody has applied it, for which this node had to have it.
    commit(*kept);
    if (standing() == EpochStanding::failed) {
      return;  // its model did not move: it is none to vote with, or to copy
    }
  }
  if (!steps_.can_enter(value)) {
    fail({Fault::unexpected,
          fmt::format("epoch {} begins after step {}, and this node has applied {}", epoch,
                      value.base, step())});
    return;
  }
  if (place_.standing != EpochStanding::member && place_.standing != EpochStanding::leaving) {
    begun_ = step();
  }
  note_unequal(value);
  tie_since_.reset();
  contradicting_.clear();
  place_.standing = EpochStanding::member;
  place_.epoch = epoch;
  place_.members = value.members;
  place_.index = place_.index_of(place_.self);
  place_.base = value.base;
  place_.since = now_;
  place_.history = value.history;
  ending_.clear();
  donor_.enter(step(), now_);
  steps_.enter(value);
}

}  // namespace sotto::sites

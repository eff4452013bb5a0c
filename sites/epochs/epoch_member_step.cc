// EpochMember's steps: chunks, means, and when a step commits.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/sites/epochs/epoch_member.h>

namespace sotto::sites {

std::uint16_t EpochMember::index_of(const EpochNode& member) const {
  return static_cast<std::uint16_t>(std::ranges::find(members_, member) - members_.begin());
}

PartMessage EpochMember::made_part(Round step, const MeanPart& part) const {
  return {.standing = PartMessage::Standing::made,
          .step = step,
          .digest = {},
          .parts = static_cast<std::uint16_t>(members_.size()),
          .part = static_cast<std::uint16_t>(*index_),
          .who = part.who,
          .encoding = part.encoding};
}

void EpochMember::on(const EpochNode& from, const ChunkMessage& chunk, EpochTime now) {
  if (!acting() || chunk.chunk != *index_ || chunk.step <= step_ || chunk.step > step_ + 2) {
    return;
  }
  const std::uint16_t sender = index_of(from);
  Work& work = works_[chunk.step];
  if (work.made) {  // the sender lacks it
    send(from, made_part(chunk.step, *work.made));
  } else if (reducer_.decodes(chunk.encoding, *index_, members_.size())) {
    work.chunks.try_emplace(sender, chunk.encoding.begin(), chunk.encoding.end());
    work.since = work.since.value_or(now);
  }
}

void EpochMember::on(const EpochNode& from, const PartMessage& part, EpochTime /*now*/) {
  if (acting() && part.step > step_ && part.step <= step_ + 2 && part.parts == members_.size() &&
      members_[part.part] == from && reducer_.decodes(part.encoding, part.part, members_.size())) {
    works_[part.step].parts.try_emplace(
        part.part, MeanPart{part.who, {part.encoding.begin(), part.encoding.end()}});
  }
}

void EpochMember::on(const EpochNode& from, const HaveMessage& have, EpochTime /*now*/) {
  if (!acting()) {
    return;
  }
  if (have.step > step_ && have.step <= step_ + 2) {
    works_[have.step].haves[index_of(from)] = have.digest;
    if (carrying() && !mean_ && have.digest == *carry_ && !std::exchange(asked_carry_, true)) {
      send(from, WantMessage{have.step, kAllParts});
    }
  } else if (const auto digest = log_.digest(have.step);
             digest && !have.answers && rules_->answers_have()) {
    send(from, HaveMessage{have.step, *digest, true});
  }
}

void EpochMember::on_want(const EpochNode& from, const EpochHeader& header,
                          const WantMessage& want) {
  if (const StepMean* mean = log_.find(want.step)) {
    send_mean(from, *mean, *log_.digest(want.step), want.part);
  } else if (mean_ && want.step == mean_->step &&
             (lingers_ ? lingers_->carry == mean_digest_ : acting() && carrying())) {
    send_mean(from, *mean_, mean_digest_, want.part);
  } else if (const auto work = works_.find(want.step); acting() && header.epoch == epoch_ &&
                                                       work != works_.end() && work->second.made &&
                                                       want.part == *index_) {
    send(from, made_part(want.step, *work->second.made));
  }
}

void EpochMember::send_mean(const EpochNode& to, const StepMean& mean, const EpochDigest& digest,
                            std::uint16_t part) {
  for (std::size_t k = 0; k < mean.parts.size(); ++k) {
    if (part == kAllParts || part == k) {
      send(to, PartMessage{.standing = PartMessage::Standing::held,
                           .step = mean.step,
                           .digest = digest,
                           .parts = static_cast<std::uint16_t>(mean.parts.size()),
                           .part = static_cast<std::uint16_t>(k),
                           .who = mean.parts[k].who,
                           .encoding = mean.parts[k].encoding});
    }
  }
}

void EpochMember::on_held(const EpochNode& from, const PartMessage& part) {
  const bool replays =
      standing_ == EpochStanding::joining && fetch_.done() && fetch_.donors().contains(from);
  const bool lacks = acting() && carrying() && !mean_ && part.digest == *carry_;
  if (part.step != step_ + 1 || (!replays && !lacks) ||
      !reducer_.decodes(part.encoding, part.part, part.parts)) {
    return;
  }
  if (held_parts_ != part.parts || held_digest_ != part.digest) {
    held_.clear();  // parts of two means, or of two numbers of parts, are never joined
    held_parts_ = part.parts;
    held_digest_ = part.digest;
  }
  held_.insert_or_assign(part.part,
                         MeanPart{part.who, {part.encoding.begin(), part.encoding.end()}});
  if (held_.size() < part.parts) {
    return;
  }
  StepMean mean{.step = part.step, .parts = {}};
  for (auto& [index, one] : std::exchange(held_, {})) {
    mean.parts.push_back(std::move(one));
  }
  if (digest_of(mean, setup_.learning_rate) != part.digest) {
    if (replays) {
      fail({Fault::unexpected,
            fmt::format("step {}: the run's mean has another digest here: this node has another "
                        "learning rate, or memory is damaged",
                        part.step)});
    }
    return;
  }
  if (replays) {
    commit(mean, part.digest);
  } else {
    hold(std::move(mean), part.digest);
  }
}

void EpochMember::advance(EpochTime now) {
  do {
    if (acting()) {
      push();
      try_make(now);
      try_complete();
    }
  } while (acting() && try_commit());
  fetch();
  pull();
  hand_over();
}

void EpochMember::push() {
  Work& work = works_[step_ + 1];
  if (!gradient_ || carrying() || work.pushed || members_.size() < setup_.least) {
    return;
  }
  if (Status status = reducer_.begin(place(), *gradient_); !status) {
    fail(status);
    return;
  }
  work.pushed = true;
  for (std::size_t k = 0; k < members_.size(); ++k) {
    const auto chunk = static_cast<std::uint16_t>(k);
    if (k == *index_) {
      work.chunks.try_emplace(chunk, reducer_.encoding(k).begin(), reducer_.encoding(k).end());
    } else {
      send(members_[k], ChunkMessage{step_ + 1, chunk, reducer_.encoding(k)});
    }
  }
}

void EpochMember::try_make(EpochTime now) {
  Work& work = works_[step_ + 1];
  if (!acting() || carrying() || work.made || work.chunks.empty()) {
    return;
  }
  const bool all = work.chunks.size() == members_.size();
  const bool late = setup_.grace && work.since && now - *work.since >= *setup_.grace &&
                    2 * work.chunks.size() > members_.size();
  if (!all && !late) {
    return;
  }
  auto made = reducer_.make(place(), work.chunks);
  if (!made) {
    fail(made.status());
    return;
  }
  work.made = *made;
  work.parts.try_emplace(static_cast<std::uint16_t>(*index_), *made);
  send_all(made_part(step_ + 1, *made));
}

void EpochMember::try_complete() {
  const Work& work = works_[step_ + 1];
  if (!acting() || mean_ || carrying() || work.parts.size() < members_.size() ||
      parked_.size() >= kMostParked) {
    return;
  }
  StepMean mean{.step = step_ + 1, .parts = {}};
  for (const auto& [index, part] : work.parts) {
    mean.parts.push_back(part);
  }
  const EpochDigest digest = digest_of(mean, setup_.learning_rate);
  hold(std::move(mean), digest);
}

void EpochMember::hold(StepMean mean, const EpochDigest& digest) {
  mean_ = std::move(mean);
  mean_digest_ = digest;
  works_[step_ + 1].haves[static_cast<std::uint16_t>(*index_)] = digest;
  send_all(HaveMessage{step_ + 1, digest, false});
}

bool EpochMember::try_commit() {
  if (!mean_) {
    return false;
  }
  std::size_t having = 0;
  for (const auto& [place, digest] : works_[step_ + 1].haves) {
    if (digest != mean_digest_) {
      fail({Fault::unexpected,
            fmt::format("step {}: {} has another mean than this node, {}: their learning rates "
                        "differ, or memory is damaged; nobody has applied it",
                        step_ + 1, members_[place].name, self_.name)});
      return false;
    }
    ++having;
  }
  if (!rules_->commits(having, members_.size())) {
    return false;
  }
  const StepMean mean = std::move(*mean_);
  mean_.reset();
  commit(mean, mean_digest_);
  return true;
}

void EpochMember::commit(const StepMean& mean, const EpochDigest& digest) {
  const bool offered = gradient_.has_value();
  const bool whole = reducer_.commit(mean, offered);
  carry_.reset();
  ++step_;
  log_.add(mean, digest);
  push_to_newcomers(mean, digest);
  parked_.push_back(mean);
  works_.erase(works_.begin(), works_.upper_bound(step_));
  held_.clear();
  if (!computing_) {
    apply_parked();
  }
  if (offered) {
    gradient_.reset();
    outcome_ = {step_, !whole};
  }
}

void EpochMember::apply_parked() {
  while (!parked_.empty() && standing_ != EpochStanding::failed) {
    const StepMean mean = std::move(parked_.front());
    parked_.pop_front();
    apply(mean);
  }
}

void EpochMember::apply(const StepMean& mean) {
  room_.resize(setup_.parameters.size());
  check(reducer_.decode(mean, room_), "a mean was decoded when it came");
  if (Status status = model_.apply(room_); !status) {
    fail(status);
    return;
  }
  copy_if_wanted();
}

void EpochMember::hand_over() {
  if (standing_ == EpochStanding::member && !gradient_ && !leaving_ && parked_.empty()) {
    computing_ = true;
  }
}

void EpochMember::say_again() {
  for (const EpochPeer& peer : peers_) {
    send({peer.name, peer.incarnation, 0}, AskMessage{});
  }
  if (frozen()) {
    return;
  }
  if (carrying() && !mean_) {
    asked_carry_ = true;
    for (const EpochPeer& peer : peers_) {
      send({peer.name, peer.incarnation, 0}, WantMessage{step_ + 1, kAllParts});
    }
    return;
  }
  for (std::size_t k = 0; k < members_.size(); ++k) {
    say_step_again(k);
  }
}

void EpochMember::say_step_again(std::size_t place) {
  const Work& work = works_[step_ + 1];
  const auto chunk = static_cast<std::uint16_t>(place);
  if (mean_) {
    if (!work.haves.contains(chunk)) {
      send(members_[place], HaveMessage{step_ + 1, mean_digest_, false});
    }
  } else if (!work.parts.contains(chunk) && work.pushed) {
    send(members_[place], ChunkMessage{step_ + 1, chunk, reducer_.encoding(place)});
  } else if (!work.parts.contains(chunk) && !carrying()) {
    send(members_[place], WantMessage{step_ + 1, chunk});
  }
}

void EpochMember::catch_up(const EpochNode& member) {
  const std::size_t place = index_of(member);
  if (acting() && place < members_.size() && member != self_ && caught_up_.insert(place).second) {
    say_step_again(place);
  }
}

}  // namespace sotto::sites

#include "meeting_register.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/comm/run_keys.h>

namespace sotto::internal {
namespace {

std::string place_key(Rank node) { return node_key_for_all("at", node); }

std::string words(MeetingPlace place, Round rounds) {
  return place == MeetingPlace::mean
             ? fmt::format("asks for the mean model after {} rounds", rounds)
             : fmt::format("has finished after {} rounds", rounds);
}

}  // namespace

void MeetingRegister::enter_round(Round round) {
  const std::lock_guard lock(mutex_);
  entered_ = std::max(entered_, round + 1);
}

Status MeetingRegister::come(MeetingPlace place, Round rounds) {
  ByteBuffer value;
  {
    const std::lock_guard lock(mutex_);
    visiting_ = Visit{place, met_, rounds};
    value.write(static_cast<std::uint8_t>(place));
    value.write(met_);
    value.write(rounds);
  }
  if (Status status = store_.set(place_key(rank_), value.bytes()); !status.ok()) {
    return status;
  }
  return news_.announce();
}

void MeetingRegister::leave() {
  const std::lock_guard lock(mutex_);
  visiting_.reset();
  ++met_;
}

std::optional<MeetingRegister::Visit> MeetingRegister::visit_of(Rank peer) const {
  const StoreLook found = look_for(store_, place_key(peer));
  if (!found.value) {
    return std::nullopt;
  }
  ByteReader in(*found.value);
  const auto place = in.read<std::uint8_t>();
  const auto number = in.read<std::uint64_t>();
  const auto rounds = in.read<Round>();
  const bool sound = in.finished() && (place == static_cast<std::uint8_t>(MeetingPlace::mean) ||
                                       place == static_cast<std::uint8_t>(MeetingPlace::finish));
  return sound ? std::optional(Visit{static_cast<MeetingPlace>(place), number, rounds})
               : std::nullopt;
}

Status MeetingRegister::wait_fault(Rank peer) const {
  const auto theirs = peer == rank_ ? std::nullopt : visit_of(peer);
  const std::lock_guard lock(mutex_);
  if (!theirs || theirs->number != met_) {
    return {};
  }
  const bool elsewhere =
      visiting_ && (visiting_->place != theirs->place || visiting_->rounds != theirs->rounds);
  const bool beyond = !visiting_ && entered_ > theirs->rounds;
  if (!elsewhere && !beyond) {
    return {};
  }
  const std::string own = visiting_
                              ? words(visiting_->place, visiting_->rounds)
                              : fmt::format("has gone on to its gradient number {}", entered_);
  const bool finishes = theirs->place == MeetingPlace::finish ||
                        (visiting_ && visiting_->place == MeetingPlace::finish);
  const bool uneven = !visiting_ || visiting_->rounds != theirs->rounds;
  const char* advice =
      finishes && uneven ? "let all nodes take the same number of steps, or say what happens where "
                           "one is out of data (join = stop or zeros)"
      : finishes         ? "all nodes ask for the mean, or none does"
                         : "all nodes ask for the mean after the same step";
  return {Fault::unexpected, fmt::format("node {} {}, and this node {}: {}", peer,
                                         words(theirs->place, theirs->rounds), own, advice)};
}

bool MeetingRegister::asks_for_mean(Rank peer, Round rounds) const {
  const auto theirs = visit_of(peer);
  const std::lock_guard lock(mutex_);
  return theirs && theirs->place == MeetingPlace::mean && theirs->number == met_ &&
         theirs->rounds == rounds;
}

}  // namespace sotto::internal
